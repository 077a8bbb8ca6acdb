"""Calling an answer in the notebook: what it returned, what it raised, and that it did not come back."""

import contextlib
import os
import signal
import sys
import time

import pytest

from ranklab.check import grading
from ranklab.check.grading import Raised, asked, entries, listed, number, safely
from ranklab.check.verdict import NotYet


def test_an_answer_comes_back_with_its_result_or_with_what_it_raised():
    assert asked(lambda a, b: a + b, 1, 2) == (3, "")
    assert asked(lambda: [][1]) == (None, "your answer raised IndexError: list index out of range")


def told(function, *arguments, **options):
    with pytest.raises(NotYet) as raised:
        function(*arguments, **options)
    return str(raised.value)


def test_an_answer_that_never_ends_is_stopped_even_where_it_catches_everything(monkeypatch):
    monkeypatch.setattr(grading, "DEADLINE", 0.1)

    def endless():
        while True:
            with contextlib.suppress(Exception):
                time.sleep(1)

    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0]
    given, problem = asked(endless)
    assert given is None
    assert problem == "your answer did not come back within 0.1 s. Does a loop never end?"
    assert signal.getsignal(signal.SIGALRM) is handler
    assert abs(signal.getitimer(signal.ITIMER_REAL)[0] - timer) < 60  # one that ran before runs on


def test_time_that_other_programs_take_does_not_count(monkeypatch):
    monkeypatch.setattr(grading, "DEADLINE", 0.1)
    monkeypatch.setattr(grading, "FairClock", lambda pids: lambda: 0.0)  # kept from the processor all the time

    def late():
        time.sleep(0.25)
        return 7

    assert asked(late) == (7, "")


def test_a_library_is_not_left_half_imported(tmp_path, monkeypatch):
    """The deadline comes while an answer is the first to import it."""
    folder = tmp_path / "site-packages" / "slowly_imported"
    folder.mkdir(parents=True)
    alarm = "import signal\nsignal.raise_signal(signal.SIGALRM)\n"
    (folder / "__init__.py").write_text(f"import slowly_imported.part\n{alarm}WHOLE = True\n")
    (folder / "part.py").write_text("")
    monkeypatch.syspath_prepend(os.fspath(folder.parent))
    monkeypatch.setattr(grading, "FairClock", lambda pids: lambda: grading.DEADLINE)  # late whenever it is looked at

    def imports():
        import slowly_imported  # noqa: F401

        while True:
            time.sleep(1)

    assert asked(imports)[1] == "your answer did not come back within 5 s. Does a loop never end?"
    assert sys.modules["slowly_imported"].WHOLE


def test_a_number_is_told_from_what_is_none():
    assert number(lambda n: n / 4, "with 3", 3) == 0.75
    assert told(number, lambda: None, "here", what="a number of bytes") == (
        "here: your answer is None, it should be a number of bytes."
    )
    assert told(number, lambda: True, "there") == "there: your answer is True, it should be a number."
    assert told(number, lambda: 1 / 0, "nowhere") == "nowhere: your answer raised ZeroDivisionError: division by zero"


def test_a_list_is_told_from_what_is_none():
    assert entries(lambda: (each for each in (1, 2)), "here") == [1, 2]
    assert told(entries, lambda: "12", "here", what="a list of steps") == (
        "here: your answer is '12', a list of steps is expected."
    )
    assert told(entries, lambda: 12, "there") == "there: your answer is 12, a list is expected."
    assert told(entries, lambda: (1 / each for each in (1, 0)), "nowhere") == (
        "nowhere: your answer raised ZeroDivisionError: division by zero"
    )


def test_numbers_are_listed_as_they_are_said():
    assert [listed([2, 3, 4]), listed([2, 3]), listed([2])] == ["2, 3 and 4", "2 and 3", "2"]


def test_an_error_on_a_rank_takes_the_place_of_the_answer():
    assert safely(int, "7") == 7
    assert safely(int, "x") == Raised("ValueError: invalid literal for int() with base 10: 'x'")
