"""Progress of long work: bars on a terminal, plain lines elsewhere (CI, a pipe, a log)."""

import time
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

# soft_wrap: a path that is printed can be copied. No markup: "shares[rank]" is code, not a style.
console = Console(soft_wrap=True, markup=False, highlight=False)

PLAIN_SECONDS = 10


@contextmanager
def progress(title, total, unit):
    """Show ``title`` and how far it is; yields ``advance(done, what="")``.

    Args:
        title: what is being done, for example a chapter's path.
        total: how many steps there are.
        unit: what a step is called, in the plural.
    """
    with board() as shown, shown(title, total, unit) as advance:
        yield advance


@contextmanager
def board():
    """Room for several works side by side: yields what shows one of them, called and used as ``progress``."""
    if not console.is_terminal:
        yield _lines
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}", style="dim", markup=False),
    )
    with Progress(*columns, console=console) as bars:

        @contextmanager
        def bar(title, total, unit):
            task = bars.add_task(title, total=total, unit=unit, what="")
            try:
                yield lambda done, what="": bars.update(task, completed=done, what=what)
            finally:
                bars.stop_task(task)

        yield bar


@contextmanager
def _lines(title, total, unit):
    """One line at the start and one at the end; between them one when ten seconds were silent."""
    start = last = time.monotonic()
    console.print(f"{title} …")

    def advance(done, what=""):
        nonlocal last
        if time.monotonic() - last >= PLAIN_SECONDS:
            last = time.monotonic()
            console.print(f"{title}: {done} of {total} {unit}")

    yield advance
    console.print(f"{title}: done in {time.monotonic() - start:.1f} s")
