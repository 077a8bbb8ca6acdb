"""Does a chapter notice when its cells do something else? Run it with one change after the other."""

import copy

import nbformat
from rich.table import Table

from bookkit.chapter import texts
from bookkit.errors import BookError, ChapterError
from bookkit.execute import execute
from bookkit.mutations import chosen
from bookkit.needs import may_be_kept
from bookkit.normalise import MEASURED, normalise
from bookkit.notebook import cell_name, code_cells, read, tags, to_bytes
from bookkit.progress import console, progress

COUNT = 20
ENOUGH = 0.95  # of the changes have to be noticed
SECONDS = 120  # for a cell: a change may make it endless


def mutate(path, root, count=COUNT, seed=0):
    """Print a table of changes and of what noticed each; return whether fewer than 19 of 20 were noticed.

    Args:
        path: the chapter; the file stays as it is.
        root: the top of the book.
        count: how many changes.
        seed: another one chooses other changes.

    Raises:
        BookError: there is nothing to change.
    """
    stored, title = read(path), str(path.relative_to(root))
    changes = chosen(stored, count, seed)
    if not changes:
        raise BookError(f"{title} has no cell that could be changed")
    table = Table("cell", "change", "noticed by", title=title, box=None, pad_edge=False)
    missed = 0
    with progress(title, len(changes), "changes") as advance:
        for number, change in enumerate(changes):
            advance(number, change.what)
            by = noticed(path, stored, change)
            missed += not by
            table.add_row(cell_name(stored, change.index), change.what, by or "nobody")
        advance(len(changes))
    console.print(table)
    console.print(f"{len(changes) - missed} of {len(changes)} changes were noticed.")
    return missed > (1 - ENOUGH) * len(changes)


def noticed(path, stored, change):
    """Run a chapter with one change; say which cell noticed it, "" where none did.

    Args:
        path: the chapter.
        stored: its notebook.
        change: from ``mutations``.
    """
    changed = copy.deepcopy(stored)
    changed.cells[change.index].source = change.source
    try:
        # As it would be stored: what was run has the kinds of an output in another order.
        ran = nbformat.reads(to_bytes(normalise(execute(path, notebook=changed, title="", seconds=SECONDS))), 4)
    except ChapterError as error:
        return f"{error.cell}, {error.said or error.reason}" if error.cell else error.reason
    for (index, _, before), (_, _, after) in zip(code_cells(stored), code_cells(ran), strict=True):
        if not may_be_kept(before) and MEASURED not in tags(before) and _said(before) != _said(after):
            return f"{cell_name(stored, index)}, its output"
    return ""


def _said(cell):
    return [texts(output)[1] for output in cell.outputs]
