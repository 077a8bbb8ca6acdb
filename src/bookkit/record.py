"""Execute chapters and store what they print in their files."""

import time

from rich.table import Table

from bookkit.execute import execute
from bookkit.normalise import normalise
from bookkit.notebook import code_cells, read, write
from bookkit.progress import console, progress


def record(paths, root):
    """Re-execute chapters, one after the other, and store each one's outputs when it has finished.

    A chapter that fails keeps the outputs it had; the chapters before it keep their new ones.
    One at a time: ranks need the machine's cores, and two chapters would disturb each other.

    Args:
        paths: the chapters.
        root: the top of the book; chapters are called by their path below it.

    Raises:
        ChapterError: a chapter failed.
    """
    summary = Table("chapter", "cells", "seconds", box=None, pad_edge=False)
    try:
        for path in paths:
            title = str(path.relative_to(root))
            total = sum(1 for _ in code_cells(read(path)))
            start = time.monotonic()
            with progress(title, total, "cells") as advance:
                notebook = execute(path, title=title, advance=advance)
            write(path, normalise(notebook))
            summary.add_row(title, str(total), f"{time.monotonic() - start:.1f}")
    finally:
        if summary.row_count:
            console.print(summary)
