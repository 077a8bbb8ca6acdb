"""Calling an answer, for the graders: in the notebook or on the ranks, with a deadline.

A deadline counts the seconds that could be used, not those of the clock: where other programs take the processor, an
answer has longer (:class:`ranklab.system.starving.FairClock`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ..outcome import clean
from ..rank.interrupt import forget_broken, importing_a_library, note_broken
from ..rank.trace import cut_traceback, describe
from ..system.starving import FairClock
from ..world import current
from .verdict import NotYet

DEADLINE = 5.0  # seconds in which an answer has to come back, wherever it runs
PREPARING = 12  # times as long for what the answer has no part in: importing, meeting
LOOK = 0.05  # seconds until the next look at an answer whose time is up by the clock, and not by what it could use


def on_ranks(function: Callable, *arguments: Any, patience: float = 1) -> list:
    """Call a function on every rank and return the results, in rank order.

    What the answer prints there is not shown: the verdict is one sentence.

    Args:
        function: called with the arguments on each rank.
        arguments: sent to every rank.
        patience: how many times ``DEADLINE`` it may take.

    Raises:
        NotYet: there is no result; says why.
    """
    results, problem = called(function, *arguments, patience=patience)
    if problem:
        raise NotYet(problem)
    return results


def called(function: Callable, *arguments: Any, patience: float = 1) -> tuple[list, str]:
    """Call a function on every rank; return the results and "", or nothing and why.

    Args:
        function: as for :func:`on_ranks`, like the others.
        arguments: see there.
        patience: see there.
    """
    results, problem = current()._call(function, *arguments, timeout=patience * DEADLINE)
    return results, clean(problem)


def asked(answer: Callable, *arguments: Any) -> tuple[Any, str]:
    """Call an answer in the notebook.

    Args:
        answer: called with the arguments.
        arguments: a copy of its own for each call, where an answer could change them.

    Returns:
        What it returned and "", or None and why there is no result: "your answer raised …". Outside the main thread,
        where no signal arrives, there is no deadline.
    """
    try:
        with _limited(DEADLINE):
            return answer(*arguments), ""
    except _Late:
        return None, f"your answer did not come back within {DEADLINE:g} s. Does a loop never end?"
    except Exception as error:
        return None, f"your answer raised {describe(error)}"


def number(answer: Callable, where: str, *arguments: Any, what: str = "a number") -> float:
    """Return the number that an answer is in the notebook.

    Args:
        answer: called with the arguments.
        where: the case, for the sentence.
        arguments: as for :func:`asked`.
        what: what is expected, for the sentence.

    Raises:
        NotYet: it is none; says why.
    """
    given, problem = asked(answer, *arguments)
    given = plain(given)
    if not problem and (isinstance(given, bool) or not isinstance(given, (int, float))):
        problem = f"your answer is {given!r}, it should be {what}."
    if problem:
        raise NotYet(f"{where}: {problem}")
    return given


def plain(given: Any) -> Any:
    """Return a number of NumPy's or torch's as one of Python's, and everything else as it is."""
    with contextlib.suppress(AttributeError, TypeError, ValueError, RuntimeError):  # no number, or several
        return given.item()
    return given


def entries(answer: Callable, where: str, *arguments: Any, what: str = "a list") -> list:
    """Return the list that an answer is in the notebook.

    Args:
        answer: returns a list, or what a list can be made of: a tuple, a tensor, what a generator yields.
        where: the case, for the sentence.
        arguments: as for :func:`asked`.
        what: what is expected, for the sentence.

    Raises:
        NotYet: it is none; says why.
    """
    given, problem = asked(answer, *arguments)
    if not problem:
        given = given.tolist() if hasattr(given, "tolist") else given
        if isinstance(given, Iterable) and not isinstance(given, str):
            given, problem = asked(list, given)  # a generator runs only now, and raises what it raises
        else:
            problem = f"your answer is {given!r}, {what} is expected."
    if problem:
        raise NotYet(f"{where}: {problem}")
    return given


def listed(numbers: Sequence[int]) -> str:
    """Return "2, 3 and 4"."""
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


@dataclass
class Raised:
    """An error in the place of an answer on a rank.

    Attributes:
        words: what was raised, and where in the reader's cell.
    """

    words: str


def safely(answer: Callable, *arguments: Any) -> Any:
    """Call an answer on a rank; an error comes back as :class:`Raised`, so that it costs no round of its own."""
    try:
        return answer(*arguments)
    except Exception as error:
        where = [line for line in cut_traceback(error)[:-1] if line.startswith("line")]
        return Raised(", ".join([describe(error), *where[-1:]]))


class _Late(BaseException):
    """Ends an answer that takes too long; no Exception, which the answer may catch."""


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    clock = FairClock([os.getpid()])

    def late(_: int, frame: FrameType | None) -> None:
        # No answer is to blame for what other programs take, and no library may stay half imported.
        if clock() < seconds or importing_a_library(frame):
            signal.setitimer(signal.ITIMER_REAL, max(LOOK, seconds - clock()))
            return
        note_broken(frame)
        raise _Late

    handler, timer = signal.signal(signal.SIGALRM, late), signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
        forget_broken()
