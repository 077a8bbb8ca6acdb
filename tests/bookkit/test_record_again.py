"""Recorded again, a chapter has the bytes that it stores, except what it measures.

nbval executes all chapters and compares their text; here the shortest, down to its first figure, stands for what nbval
does not compare: the pixels of figures, metadata, counts.
"""

import copy
from pathlib import Path

from bookkit.chapters import chapters
from bookkit.execute import execute
from bookkit.normalise import comparable
from bookkit.notebook import read

ROOT = Path(__file__).parents[2]


def test_the_book_has_chapters():
    assert chapters(ROOT)


def test_recording_again_gives_the_same_bytes():
    chapter = ROOT / "book" / "ranks" / "rank-local-rank-world-size.ipynb"
    stored = read(chapter)
    figure = next(number for number, cell in enumerate(stored.cells) if "image/png" in str(cell.get("outputs")))
    del stored.cells[figure + 1 :]
    assert comparable(execute(chapter, notebook=copy.deepcopy(stored))) == comparable(stored)
