"""Calling an answer, for the graders: in the notebook with a deadline, or on the ranks."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..outcome import clean
from ..rank.trace import cut_traceback, describe
from ..world import current

DEADLINE = 5.0


def on_ranks(function: Callable, *arguments: Any, deadline: float | None = DEADLINE) -> list | None:
    """Call a function on every rank; say in one sentence why there is no result, and return None.

    What the answer prints there is not shown: the verdict is one sentence.

    Args:
        function: called with the arguments on each rank.
        arguments: sent to every rank.
        deadline: seconds until the call counts as hung.
    """
    results, problem = current()._call(function, *arguments, timeout=deadline)
    if problem:
        print(f"Not yet. {clean(problem)}")
        return None
    return results


def asked(answer: Callable, *arguments: Any, deadline: float = DEADLINE) -> tuple[Any, str]:
    """Call an answer in the notebook.

    Args:
        answer: called with the arguments.
        arguments: a copy of its own for each call, where an answer could change them.
        deadline: seconds until it is stopped; no limit outside the main thread, where no signal arrives.

    Returns:
        What it returned and "", or None and why there is no result: "your answer raised …".
    """
    try:
        with _limited(deadline):
            return answer(*arguments), ""
    except _Late:
        return None, f"your answer did not come back within {deadline:g} s. Does a loop never end?"
    except Exception as error:
        return None, f"your answer raised {describe(error)}"


def number(answer: Callable, where: str, *arguments: Any, what: str = "a number") -> float | None:
    """Return the number that an answer is in the notebook, or say in one sentence why it is none, and return None.

    Args:
        answer: called with the arguments.
        where: the case, for the sentence.
        arguments: as for :func:`asked`.
        what: what is expected, for the sentence.
    """
    given, problem = asked(answer, *arguments)
    if not problem and (isinstance(given, bool) or not isinstance(given, (int, float))):
        problem = f"your answer is {given!r}, it should be {what}."
    if problem:
        print(f"Not yet. {where}: {problem}")
        return None
    return given


def entries(answer: Callable, where: str, *arguments: Any, what: str = "a list") -> list | None:
    """Return the list that an answer is in the notebook, or say in one sentence why it is none, and return None.

    Args:
        answer: returns a list, or what a list can be made of: a tuple, a tensor, what a generator yields.
        where: the case, for the sentence.
        arguments: as for :func:`asked`.
        what: what is expected, for the sentence.
    """
    given, problem = asked(answer, *arguments)
    if not problem:
        given = given.tolist() if hasattr(given, "tolist") else given
        if isinstance(given, Iterable) and not isinstance(given, str):
            given, problem = asked(list, given)  # a generator runs only now, and raises what it raises
        else:
            problem = f"your answer is {given!r}, {what} is expected."
    if problem:
        print(f"Not yet. {where}: {problem}")
        return None
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

    def late(*_) -> None:
        raise _Late

    handler, timer = signal.signal(signal.SIGALRM, late), signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
