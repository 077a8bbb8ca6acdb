"""Chapters for which no time is left are named, and those that have begun are compared to their end."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from bookkit import until


@pytest.fixture(autouse=True)
def nothing_has_begun(monkeypatch):
    monkeypatch.setattr(until, "_begun", set())


def cell(chapter):
    return SimpleNamespace(cell={}, path=Path(f"book/{chapter}.ipynb"))


def test_no_chapter_begins_after_that_moment_and_none_is_cut(monkeypatch):
    monkeypatch.setenv(until.VARIABLE, str(time.time() + 600))
    until.pytest_runtest_setup(cell("ddp"))
    monkeypatch.setenv(until.VARIABLE, str(time.time() - 1))
    until.pytest_runtest_setup(cell("ddp"))
    for _ in range(2):
        with pytest.raises(pytest.skip.Exception, match="no time was left for buckets, which was not compared"):
            until.pytest_runtest_setup(cell("buckets"))


def test_without_a_moment_nothing_is_left_out_and_tests_never_are(monkeypatch):
    monkeypatch.delenv(until.VARIABLE, raising=False)
    until.pytest_runtest_setup(cell("ddp"))
    monkeypatch.setenv(until.VARIABLE, "1")
    until.pytest_runtest_setup(SimpleNamespace(path=Path("tests/test_it.py")))
