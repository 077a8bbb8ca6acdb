"""Can somebody who comes late go on from the middle? ``python -m tests.benchmarks.late [chapter …]``.

Runs, in a fresh kernel, the cells that the box *Start here if you came late* names, and then everything below the box.
The cells are found by the box's own words, so a box that names too few fails here, and so does one whose words name
none. Prints one line a chapter. Exit status 1 where a cell failed.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from bookkit.chapters import named
from bookkit.errors import BookError
from bookkit.execute import execute
from bookkit.notebook import read
from bookkit.voice import LATE

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^(##+) (.+)$", re.M)
START = re.compile(r"`(?:world = )?ranklab\.start|start the ranks|starts the (?:ranks|world)")
SECTIONS = re.compile(r"(?:cells? of|Run) \*([^*]+)\*(?: that begin with `([^`]+)`)?")
FOLDED = re.compile(r"folded cells \*([^*…]+)…\* in \*([^*]+)\*")
MAKES = re.compile(r"(?:makes?|defines?) `(\w+)`(?: and `(\w+)`)?")
DOWN_TO = re.compile(r"all cells from the top to the one with `([^`]+)`")
ABOVE = re.compile(r"all cells above the heading \*([^*]+)\*")


def headings(notebook) -> list[set[str]]:
    """Return, for each cell, the heading of its section and that of its subsection."""
    found, open_ones = [], {}
    for cell in notebook.cells:
        for level, title in HEADING.findall(cell.source) if cell.cell_type == "markdown" else ():
            open_ones = {each: name for each, name in open_ones.items() if each < len(level)} | {len(level): title}
        found.append(set(open_ones.values()))
    return found


def needed(notebook) -> tuple[list[int], int]:
    """Return the places of the code cells that the box names, and the place of the box.

    Raises:
        BookError: the box names no cell, or one that is not there.
    """
    cells, below = notebook.cells, headings(notebook)
    box = next(place for place, cell in enumerate(cells) if cell.cell_type == "markdown" and LATE in cell.source)
    words = re.sub(r"\n>? ?", " ", cells[box].source.partition(LATE)[2])
    code = [place for place in range(box) if cells[place].cell_type == "code"]

    def where(holds: Callable[[int], object], what: str) -> list[int]:
        if not (places := [place for place in code if holds(place)]):
            raise BookError(f"its box names {what}, and no cell above is that")
        return places

    found: list[int] = []
    if START.search(words):
        found += where(lambda place: "= ranklab.start(" in cells[place].source, "the start of the ranks")
    if re.search(r"first (?:code )?cell", words):
        found.append(code[0])
    if "the cell above" in words:
        found.append(code[-1])
    for title, begin in SECTIONS.findall(words):
        found += where(lambda p, t=title, b=begin: t in below[p] and cells[p].source.startswith(b), f"*{title}*")
    for begin, title in FOLDED.findall(words):
        comment = re.compile(rf"(?:%%px.*\n)?# {begin}")
        found += where(lambda p, t=title, c=comment: t in below[p] and c.match(cells[p].source), f"*{title}*")
    for names in MAKES.findall(words):
        for name in filter(None, names):
            makes = re.compile(rf"^\s*(?:def {name}\(|{name}\b[^=\n(]*= )", re.M)
            found += where(lambda place, m=makes: m.search(cells[place].source), f"`{name}`")[:1]
    for text in DOWN_TO.findall(words):
        found += range(where(lambda place, t=text: t in cells[place].source, f"`{text}`")[0] + 1)
    for title in ABOVE.findall(words):
        found += range(next(place for place, names in enumerate(below) if title in names))
    places = sorted({place for place in found if place in code})
    if not places:
        raise BookError("its box names no cell that this program finds")
    return places, box


def late(notebook):
    """Return the notebook of somebody who comes late: what the box names, and all from the box on."""
    places, box = needed(notebook)
    rest = copy.copy(notebook)
    rest.cells = [notebook.cells[place] for place in [*places, *range(box, len(notebook.cells))]]
    return rest


def main() -> int:
    """Print a line for each chapter; return 1 where a cell failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("chapters", nargs="*", type=Path, help="all where none is given")
    console, failed = Console(), 0
    for path in named(ROOT, parser.parse_args().chapters):
        try:
            execute(ROOT / path, notebook=late(read(ROOT / path)), title=str(path))
            said = "goes on from its box"
        except BookError as error:
            said, failed = str(error), 1
        console.print(f"{Path(path).stem}: {said}", highlight=False, markup=False)  # [0] is no style
    return failed


if __name__ == "__main__":
    sys.exit(main())
