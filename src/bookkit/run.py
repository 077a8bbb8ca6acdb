"""Execute chapters side by side, go on after one that fails, and say so at the top of its page."""

import asyncio
from pathlib import Path

from nbformat.v4 import new_markdown_cell
from rich.table import Table

from bookkit.chapters import longest_first
from bookkit.errors import BookError
from bookkit.execute import stoppable
from bookkit.machine import places
from bookkit.notebook import read, write
from bookkit.progress import board, console
from bookkit.record import record_one, summary

# Fences longer than any that an error may hold.
NOTICE = """\
````````{{admonition}} On this machine the chapter stopped
:class: error

{place} {reason}

What follows is what is stored with the book, not what this machine printed. `make run CH={name}` tries again.
````````"""
SAID = "```````text\n{said}\n```````"


def run(paths, root, beside=None):
    """Execute chapters and store what each prints in its file, as many at once as this machine has room for.

    A chapter that fails keeps the outputs it had: its page stays whole, and what other pages refer to stays there.

    Args:
        paths: the chapters.
        root: the top of the book; chapters are called by their path below it.
        beside: how many at once.

    Returns:
        The chapters that failed, as ``{path: BookError}``, in the order of ``paths``.

    Raises:
        Interrupted: SIGINT or SIGTERM arrived; kernels and ranks have left by then.
    """
    failed = stoppable(_run(paths, root, beside or places()))
    return {path: failed[path] for path in paths if path in failed}


async def _run(paths, root, beside):
    room, table = asyncio.Semaphore(beside), summary()
    failed: dict[Path, BookError] = {}

    def stopping():
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0

    async def run_one(path):
        async with room:
            try:
                table.add_row(*await record_one(path, root, shown))
            except BookError as error:
                if stopping():
                    raise  # its kernel was stopped, and nothing is wrong with the chapter
                failed[path] = error
                console.print(error, soft_wrap=False)

    with board() as shown:
        # return_exceptions: all are waited for also where one ends at once because the reader has pressed Ctrl-C.
        outcomes = await asyncio.gather(*map(run_one, longest_first(paths)), return_exceptions=True)
    for outcome in filter(None, outcomes):
        raise outcome
    if table.row_count:
        console.print(table)
    return failed


def tell(failed, root):
    """Print the chapters that failed, each with the cell and the reason."""
    table = Table("failed", "cell", "reason", box=None, pad_edge=False)
    for path, error in failed.items():
        table.add_row(str(path.relative_to(root)), getattr(error, "cell", None) or "", short(error))
    console.print(table, soft_wrap=False, style="red")


def short(error):
    """Why a chapter failed, in a line."""
    said = getattr(error, "said", "")
    return f"{getattr(error, 'reason', error)}{': ' if said else ''}{said}"


def notice(path, error):
    """Write at the top of a chapter's page, below its title, where and why it stopped on this machine."""
    notebook = read(path)
    cell, said = getattr(error, "cell", None), getattr(error, "said", "")
    place = f"Its {cell}" if cell else "It:"
    reason = getattr(error, "reason", str(error)) + (f":\n\n{SAID.format(said=said)}" if said else ".")
    text = NOTICE.format(place=place, reason=reason, name=path.stem)
    first = notebook.cells[0] if notebook.cells else None
    if first is not None and first.cell_type == "markdown" and first.source.startswith("# "):
        title, _, rest = first.source.partition("\n")
        first.source = f"{title}\n\n{text}\n{rest}"
    else:
        notebook.cells.insert(0, new_markdown_cell(text))
    write(path, notebook)
