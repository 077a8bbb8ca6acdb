"""Does each fault of the chapter *elastic* end as the page says? ``python -m tests.benchmarks.faults [rounds]``.

Runs the chapter's drill again and again, 10 times by default, from the chapter's own cells and with their checks: each
round starts new hosts and new torchruns. The table says for each fault in how many of the rounds all came as the page
says, and the seconds from the fault until a torchrun noticed, and until the first new step. A round that fails says at
which cell, and its files are kept. Needs hosts, as the chapter does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import nbformat
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import Notebook

CHAPTER = Path(__file__).parents[2] / "book" / "launching" / "elastic.ipynb"
LOST, LAST = "store lost", "torchrun3.wait("


def cells() -> list[str]:
    """The chapter's code cells up to the one that checks the last fault."""
    code = [cell.source for cell in nbformat.read(CHAPTER, 4).cells if cell.cell_type == "code"]
    last = next(number for number, source in enumerate(code) if LAST in source)
    return [source for source in code[: last + 2] if "ranklab.start(" not in source]  # the drill needs no ranks here


def one() -> None:
    """Run one round in this process; print one line per fault, and where it ended early, why."""
    os.chdir(CHAPTER.parent)
    notebook = Notebook()
    error, ended = None, 0.0
    for cell in ["import ranklab", *cells()]:
        began = time.monotonic()
        error = notebook.run(cell).error
        if LAST in cell:
            ended = time.monotonic() - began
        if error:
            print(f"failed\t{cell.splitlines()[0]}: {type(error).__name__}: {str(error).splitlines()[:1]}")
            break
    for fault in notebook.names["drill"].faults if "drill" in notebook.names else []:
        if "twice" in fault:
            first = min((when for _, _, when in fault["noticed"]), default=None)
            noticed = "" if first is None else f"{first - fault['began']:.2f}"
            again = f"{fault['back'] - fault['began']:.2f}" if noticed else ""
            print("fault", fault["fault"], noticed, again, fault["ranks"], fault["twice"], sep="\t")
    if ended and not error:
        print("fault", LOST, f"{ended:.2f}", "", 0, 0, sep="\t")
    if lab := notebook.names.get("lab"):
        lab.stop()


def spread(values: Iterable[str]) -> str:
    """The smallest, the middle and the largest of some seconds; nothing where nobody noticed."""
    seconds = sorted(float(value) for value in values if value)
    return f"{seconds[0]:.1f} / {seconds[len(seconds) // 2]:.1f} / {seconds[-1]:.1f}" if seconds else "–"


def main(rounds: int) -> int:
    """Run the rounds, print the table, and return 1 where one failed."""
    console, told, failed = Console(), {}, 0
    for number in range(1, rounds + 1):
        command = [sys.executable, "-m", "tests.benchmarks.faults", "one"]
        try:
            ran = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
        except KeyboardInterrupt:  # the table of the rounds until here
            rounds = number - 1
            break
        lines = [line.split("\t") for line in ran.stdout.splitlines()]
        for _, fault, *row in (line for line in lines if line[0] == "fault"):
            told.setdefault(fault, []).append(row)
        why = next((line[1] for line in lines if line[0] == "failed"), "") or ran.stderr[-300:] * (ran.returncode != 0)
        failed += bool(why)
        console.print(f"round {number}: {why or 'as the page says'}", highlight=False, markup=False)
    title = "Seconds: shortest / middle / longest"
    table = Table("fault", "rounds", "until noticed", "until a new step", "ranks", "steps twice", title=title)
    for fault, rows in told.items():
        noticed, again, ranks, twice = zip(*rows, strict=True)
        sizes = [", ".join(sorted(set(column))) for column in (ranks, twice)]
        table.add_row(fault, f"{len(rows)} of {rounds}", spread(noticed), spread(again), *sizes)
    console.print(table)
    return int(failed > 0)


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "10"
    sys.exit(one() if asked == "one" else main(int(asked)))
