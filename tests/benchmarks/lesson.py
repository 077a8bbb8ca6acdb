"""Does a lesson fit into its minutes? ``python -m tests.benchmarks.lesson your-first-ranks ddp``.

Goes through the *core* sections of a chapter as a learner does, one cell after the other, in a fresh kernel, and leaves
out those marked *more*, but for the boxes at their ends that bring one back: that these run alone is a part of the
answer. Counts the seconds that each cell runs on this machine, and adds what people take: reading at the pace of
somebody whose English is a second language, five seconds for a line that is typed, a minute for a question that a room
votes on. Folded cells are run and cost only what they run. Prints, for each section, those minutes beside the ones that
the page states. Exit status 1 where a cell failed.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bookkit.chapters import named
from bookkit.errors import BookError
from bookkit.execute import execute
from bookkit.needs import NEEDS_GPU
from bookkit.normalise import HIDDEN
from bookkit.notebook import in_solutions, read, tags
from bookkit.voice import BOLD_QUESTION, FOOTNOTE, LATE, MINUTES

ROOT = Path(__file__).parents[2]
WORDS_A_MINUTE = 150
SECONDS_A_LINE = 5
SECONDS_A_QUESTION = 60
HEADING = re.compile(r"^(##+) (.+)$", re.M)


class Section:
    """A part of a chapter below one heading: what it states, and what it takes."""

    def __init__(self, title: str, kind: str, stated: int) -> None:
        self.title, self.kind, self.stated = title, kind, stated
        self.words = self.lines = self.questions = 0
        self.seconds = 0.0

    @property
    def minutes(self) -> float:
        """What a learner takes."""
        people = self.words / WORDS_A_MINUTE * 60 + self.lines * SECONDS_A_LINE + self.questions * SECONDS_A_QUESTION
        return (people + self.seconds) / 60


def sections(notebook) -> Iterator[tuple[Section, list[int]]]:
    """Return each section with the places of its cells; one without minutes of its own goes with the one before."""
    section, places = Section("(the top)", "Core", 0), []
    for place, cell in enumerate(notebook.cells):
        heading = HEADING.search(cell.source) if cell.cell_type == "markdown" else None
        minutes = MINUTES.search(cell.source) if heading else None
        if heading and (minutes or len(heading[1]) == 2):
            yield section, places
            kind, stated = (minutes[1], int(minutes[2])) if minutes else ("Core", 0)
            section, places = Section(heading[2], kind, stated), []
        places.append(place)
    yield section, places


def lesson(notebook) -> tuple[object, dict[int, Section]]:
    """Return the notebook of the core sections alone, and the section of each of its cells."""
    core, cells, belongs = copy.copy(notebook), [], {}
    solutions = in_solutions(notebook)
    for section, places in sections(notebook):
        if section.kind != "Core":
            section, places = Section(f"back, without {section.title}", "Core", 0), catching_up(notebook, places)
        for place in places:
            cell = notebook.cells[place]
            if NEEDS_GPU in tags(cell) or place in solutions:
                continue
            belongs[len(cells)] = section
            cells.append(cell)
            count(section, cell)
    core.cells = cells
    return core, belongs


def catching_up(notebook, places: list[int]) -> list[int]:
    """Return the boxes for who comes late, among some cells, and what each of them has one run."""
    boxes = [place for place in places if LATE in notebook.cells[place].source]
    return [place for box in boxes for place in (box, box + 1)]


def count(section: Section, cell) -> None:
    """Add to a section what a learner reads, types and answers in a cell."""
    if cell.cell_type == "markdown":
        text = FOOTNOTE.sub("", cell.source)
        section.words += len(text.split())
        section.questions += len(BOLD_QUESTION.findall(text))
    elif HIDDEN not in tags(cell):
        section.lines += len([line for line in cell.source.splitlines() if line.strip()])


def hold(path: Path) -> list[Section]:
    """Go through the core sections of a chapter; return them with what they took.

    Raises:
        BookError: a cell failed.
    """
    core, belongs = lesson(read(path))
    code = [index for index, cell in enumerate(core.cells) if cell.cell_type == "code"]
    began: list[float] = []

    def advance(done: int, what: str = "") -> None:
        while len(began) <= done:
            began.append(time.monotonic())

    execute(path, notebook=core, advance=advance)
    began.append(time.monotonic())
    for number, index in enumerate(code):
        belongs[index].seconds += began[number + 1] - began[number]
    return list(dict.fromkeys(belongs.values()))


def main() -> int:
    """Print the table of each chapter; return 1 where a cell failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("chapters", nargs="*", type=Path, help="all where none is given")
    console, failed = Console(), 0
    for path in named(ROOT, parser.parse_args().chapters):
        try:
            held = hold(ROOT / path)
        except BookError as error:
            console.print(f"{path}: {error}", highlight=False, markup=False)  # [0] is no style
            failed = 1
            continue
        columns = ("section", "words", "lines", "questions", "cells run, s", "minutes", "stated")
        table = Table(*columns, title=f"{path.stem}: the core, held")
        for part in held:
            numbers = [part.words, part.lines, part.questions, round(part.seconds), f"{part.minutes:.0f}", part.stated]
            table.add_row(part.title, *map(str, numbers))
        total = sum(part.minutes for part in held)
        table.add_row("all", "", "", "", "", f"{total:.0f}", str(sum(part.stated for part in held)))
        console.print(table)
    return failed


if __name__ == "__main__":
    sys.exit(main())
