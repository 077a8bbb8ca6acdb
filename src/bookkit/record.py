"""Execute chapters and store what they print in their files."""

import time

from rich.table import Table

from bookkit.errors import BookError
from bookkit.execute import execute
from bookkit.needs import missing
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
        BookError: this machine lacks what a chapter needs, so its outputs would not be the real ones.
    """
    summary = Table("chapter", "cells", "seconds", box=None, pad_edge=False)
    try:
        for path in paths:
            title = str(path.relative_to(root))
            before = read(path)
            if needed := missing(before):
                raise BookError(f"{title} needs {needed}: record it on a machine that has them.")
            total = sum(1 for _ in code_cells(before))
            start = time.monotonic()
            with progress(title, total, "cells") as advance:
                notebook = execute(path, title=title, advance=advance)
            write(path, normalise(notebook))
            summary.add_row(title, str(total), f"{time.monotonic() - start:.1f}")
    finally:
        if summary.row_count:
            console.print(summary)
