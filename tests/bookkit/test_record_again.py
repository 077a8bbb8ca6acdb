"""Recorded again, every chapter of the book has the bytes that it stores, except what it measures."""

from pathlib import Path

import pytest

from bookkit.chapters import chapters
from bookkit.errors import BookError
from bookkit.execute import execute
from bookkit.needs import missing
from bookkit.normalise import comparable
from bookkit.notebook import read

ROOT = Path(__file__).parents[2]


def the_chapters():
    """The book's chapters; where there are none the test that says so fails."""
    try:
        return chapters(ROOT)
    except BookError:
        return []


def test_the_book_has_chapters():
    assert chapters(ROOT)


@pytest.mark.ranks
@pytest.mark.slow
@pytest.mark.parametrize("chapter", the_chapters(), ids=lambda path: path.stem)
def test_recording_again_gives_the_same_bytes(chapter):
    stored = read(chapter)
    if missing(stored):
        pytest.skip(f"this machine lacks {missing(stored)}")
    assert comparable(execute(chapter)) == comparable(stored)
