"""Recorded twice, every chapter of the book has the same bytes, except what it measures."""

from pathlib import Path

import pytest

from bookkit.chapters import chapters
from bookkit.errors import BookError
from bookkit.execute import execute
from bookkit.normalise import comparable

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
def test_recording_twice_gives_the_same_bytes(chapter):
    assert comparable(execute(chapter)) == comparable(execute(chapter))
