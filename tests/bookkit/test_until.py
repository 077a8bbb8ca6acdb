"""What no time is left for is named: chapters that have begun are compared to their end, and tests leave them time."""

import os
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


def trial(*markers):
    return SimpleNamespace(path=Path("tests/test_it.py"), get_closest_marker=lambda name: name in markers)


def test_no_chapter_begins_after_that_moment_and_none_is_cut(monkeypatch):
    monkeypatch.setenv(until.VARIABLE, str(time.time() + 600))
    until.pytest_runtest_setup(cell("ddp"))
    monkeypatch.setenv(until.VARIABLE, str(time.time() - 1))
    until.pytest_runtest_setup(cell("ddp"))
    for _ in range(2):
        with pytest.raises(pytest.skip.Exception, match="no time was left for buckets, which was not compared"):
            until.pytest_runtest_setup(cell("buckets"))


@pytest.mark.parametrize("marker", until.TAKE_TIME)
def test_tests_that_take_time_leave_half_of_it_to_the_chapters(monkeypatch, marker):
    now = time.time()
    monkeypatch.setattr(until, "_session_began", lambda: now - 1000)
    monkeypatch.setenv(until.VARIABLE, str(now + 1600))
    until.pytest_runtest_setup(trial(marker))
    monkeypatch.setenv(until.VARIABLE, str(now + 900))
    until.pytest_runtest_setup(trial())
    with pytest.raises(pytest.skip.Exception, match="no time was left for this test"):
        until.pytest_runtest_setup(trial(marker))


def test_without_a_moment_nothing_is_left_out(monkeypatch):
    monkeypatch.delenv(until.VARIABLE, raising=False)
    until.pytest_runtest_setup(cell("ddp"))
    until.pytest_runtest_setup(trial("ranks"))


def test_workers_count_from_the_beginning_of_the_run(monkeypatch):
    """A worker that is started late has not more time than the others; the one who starts it told it."""
    until._session_began.cache_clear()
    monkeypatch.setenv(f"{until.VARIABLE}_BEGAN", "5.5")
    assert until._session_began() == 5.5
    until._session_began.cache_clear()
    monkeypatch.delenv(f"{until.VARIABLE}_BEGAN")
    before = time.time()
    until.pytest_configure()
    assert before <= float(os.environ[f"{until.VARIABLE}_BEGAN"]) == until._session_began() <= time.time()
    until._session_began.cache_clear()


def test_the_end_says_how_much_was_left_out():
    def report(name, why):
        return SimpleNamespace(nodeid=name, longrepr=("file", 1, f"Skipped: {why}"))

    late = f"no time was left for this test ({until.VARIABLE})"
    skipped = [report("tests/test_a.py::test_it", late), report("tests/test_a.py::test_too", late)]
    skipped += [report("book/ddp.ipynb::Cell 1", late), report("tests/test_b.py::test_it", "no sshd")]
    lines = []
    until.pytest_terminal_summary(SimpleNamespace(stats={"skipped": skipped}, write_line=lines.append))
    assert lines == [f"No time was left for 3 tests or cells of test_a.py, ddp.ipynb ({until.VARIABLE})."]
    until.pytest_terminal_summary(SimpleNamespace(stats={}, write_line=lines.append))
    assert len(lines) == 1
