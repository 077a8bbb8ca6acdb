"""Calling an answer in the notebook: what it returned, what it raised, and that it did not come back."""

import contextlib
import signal
import time

from ranklab.check.grading import Raised, asked, entries, listed, number, safely


def test_an_answer_comes_back_with_its_result_or_with_what_it_raised():
    assert asked(lambda a, b: a + b, 1, 2) == (3, "")
    assert asked(lambda: [][1]) == (None, "your answer raised IndexError: list index out of range")


def test_an_answer_that_never_ends_is_stopped_even_where_it_catches_everything():
    def endless():
        while True:
            with contextlib.suppress(Exception):
                time.sleep(1)

    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0]
    given, problem = asked(endless, deadline=0.1)
    assert given is None
    assert problem == "your answer did not come back within 0.1 s. Does a loop never end?"
    assert signal.getsignal(signal.SIGALRM) is handler
    assert abs(signal.getitimer(signal.ITIMER_REAL)[0] - timer) < 60  # one that ran before runs on


def test_a_number_is_told_from_what_is_none(capsys):
    assert number(lambda n: n / 4, "with 3", 3) == 0.75
    assert number(lambda: None, "here", what="a number of bytes") is None
    assert number(lambda: True, "there") is None
    assert number(lambda: 1 / 0, "nowhere") is None
    assert capsys.readouterr().out.splitlines() == [
        "Not yet. here: your answer is None, it should be a number of bytes.",
        "Not yet. there: your answer is True, it should be a number.",
        "Not yet. nowhere: your answer raised ZeroDivisionError: division by zero",
    ]


def test_a_list_is_told_from_what_is_none(capsys):
    assert entries(lambda: (each for each in (1, 2)), "here") == [1, 2]
    assert entries(lambda: "12", "here", what="a list of steps") is None
    assert entries(lambda: 12, "there") is None
    assert entries(lambda: (1 / each for each in (1, 0)), "nowhere") is None
    assert capsys.readouterr().out.splitlines() == [
        "Not yet. here: your answer is '12', a list of steps is expected.",
        "Not yet. there: your answer is 12, a list is expected.",
        "Not yet. nowhere: your answer raised ZeroDivisionError: division by zero",
    ]


def test_numbers_are_listed_as_they_are_said():
    assert [listed([2, 3, 4]), listed([2, 3]), listed([2])] == ["2, 3 and 4", "2 and 3", "2"]


def test_an_error_on_a_rank_takes_the_place_of_the_answer():
    assert safely(int, "7") == 7
    assert safely(int, "x") == Raised("ValueError: invalid literal for int() with base 10: 'x'")
