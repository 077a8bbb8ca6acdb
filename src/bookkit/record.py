"""Execute chapters and store what they print in their files."""

import copy
import os
import time

from rich.table import Table

from bookkit.errors import BookError
from bookkit.execute import executed, stoppable
from bookkit.lint import formatted
from bookkit.normalise import normalise
from bookkit.notebook import code_cells, read, write
from bookkit.progress import board, console
from bookkit.recorded import merged, note


def record(paths, root, *, tidy=False, gpu=False):
    """Re-execute chapters, one after the other, and store each one's outputs when it has finished.

    A chapter that fails keeps the outputs it had; the chapters before it keep their new ones.
    One at a time: what they measure is stored, and two chapters would disturb each other.

    Args:
        paths: the chapters.
        root: the top of the book; chapters are called by their path below it.
        tidy: bring a chapter's code into ruff's format first, which ``check`` asks for.
        gpu: store the outputs of cells that need a GPU alone, and leave all others as they are.

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
                table.add_row(*stoppable(record_one(path, root, shown, tidy=tidy, gpu=gpu)))
    finally:
        if table.row_count:
            console.print(table)


def summary():
    """An empty table for the rows that ``record_one`` returns."""
    return Table("chapter", "cells", "seconds", box=None, pad_edge=False)


async def record_one(path, root, shown, *, tidy=False, gpu=False):
    """Re-execute one chapter, store its outputs, and return its row of the summary.

    Args:
        path: the chapter.
        root: the top of the book.
        shown: where its progress is shown, from ``progress.board``.
        tidy: bring its code into ruff's format first.
        gpu: store the outputs of cells that need a GPU alone, and leave all others as they are.
    """
    title = str(path.relative_to(root))
    stored = read(path)
    if tidy:
        stored = formatted(stored, root, title)
    total = sum(1 for _ in code_cells(stored))
    start = time.monotonic()
    with shown(title, total, "cells") as advance:
        notebook = await executed(path, notebook=copy.deepcopy(stored), title=title, advance=advance)
    note(notebook)
    write(path, normalise(merged(stored, notebook) if gpu else notebook, title))
    return title, str(total), f"{time.monotonic() - start:.1f}"
