"""The places of the book that a page of reference may point to."""

import re
from functools import cache
from pathlib import Path

from bookkit.chapters import chapters
from bookkit.notebook import read

ROOT = Path(__file__).parents[1]


@cache
def known():
    """Return the files of all chapters."""
    return set(chapters(ROOT))


@cache
def headings(chapter):
    """Return the headings of a chapter, ``"talking/collectives"``, without the title."""
    path = ROOT / "book" / f"{chapter}.ipynb"
    assert path in known()
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    return re.findall(r"^#{2,3} (.*)$", text, re.M)
