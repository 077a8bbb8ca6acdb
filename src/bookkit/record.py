"""Execute chapters and store what they print in their files."""

import os
import time

from rich.table import Table

from bookkit.errors import BookError
from bookkit.execute import executed, stoppable
from bookkit.lint import formatted
from bookkit.normalise import normalise
from bookkit.notebook import code_cells, read, write
from bookkit.progress import board, console


def record(paths, root, *, tidy=False):
    """Re-execute chapters, one after the other, and store each one's outputs when it has finished.

    A chapter that fails keeps the outputs it had; the chapters before it keep their new ones.
    One at a time: what they measure is stored, and two chapters would disturb each other.

    Args:
        paths: the chapters.
        root: the top of the book; chapters are called by their path below it.
        tidy: bring a chapter's code into ruff's format first, which ``check`` asks for.

    Raises:
        ChapterError: a chapter failed.
        BookError: a chapter cannot be read or written.
    """
    for path in paths:
        # Asked before minutes are spent; a chapter is replaced, so it is the folder that is written.
        if not os.access(path.parent, os.W_OK):
            raise BookError(f"{path.parent} cannot be written, so nothing was executed; allow it with chmod u+w")
    table = summary()
    try:
        for path in paths:
            with board() as shown:
                table.add_row(*stoppable(record_one(path, root, shown, tidy=tidy)))
    finally:
        if table.row_count:
            console.print(table)


def summary():
    """An empty table for the rows that ``record_one`` returns."""
    return Table("chapter", "cells", "seconds", box=None, pad_edge=False)


async def record_one(path, root, shown, *, tidy=False):
    """Re-execute one chapter, store its outputs, and return its row of the summary.

    Args:
        path: the chapter.
        root: the top of the book.
        shown: where its progress is shown, from ``progress.board``.
        tidy: bring its code into ruff's format first.
    """
    title = str(path.relative_to(root))
    notebook = read(path)
    if tidy:
        notebook = formatted(notebook, root, title)
    total = sum(1 for _ in code_cells(notebook))
    start = time.monotonic()
    with shown(title, total, "cells") as advance:
        notebook = await executed(path, notebook=notebook, title=title, advance=advance)
    write(path, normalise(notebook, title))
    return title, str(total), f"{time.monotonic() - start:.1f}"
