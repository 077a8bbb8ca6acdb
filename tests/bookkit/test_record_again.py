"""Recorded again, a chapter has the bytes that it stores, except what it measures.

nbval executes all chapters and compares their text; here the shortest stands for what nbval does not compare: the
pixels of figures, metadata, counts.
"""

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
    assert comparable(execute(chapter)) == comparable(stored)
