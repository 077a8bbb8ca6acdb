"""What a grader says: right, or not yet, and why; printed in one place, whatever happens while it looks.

A grader is a function decorated with :func:`grader`. It returns its verdict, :func:`correct` or :func:`not_yet`; what
it calls may raise :class:`NotYet` where there is nothing to compare. :mod:`ranklab.check` offers every function that is
decorated in a module of a chapter, and helpers that are marked :func:`offered`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ..classroom import tell_verdict
from ..errors import RanklabError
from ..rank.trace import describe

OFFERED = "__offered__"  # the attribute of what readers find in ranklab.check
_afterwards: list[str] = []
MISSING = re.compile(r"NameError: name '(\w+)' is not defined")


@dataclass(frozen=True)
class Verdict:
    """What a grader says of an answer.

    Attributes:
        right: whether the answer is right.
        words: why, or what was compared; one sentence or two.
    """

    right: bool
    words: str

    def __str__(self) -> str:
        return f"{'Correct:' if self.right else 'Not yet.'} {self.words}"


def correct(words: str) -> Verdict:
    """Return the verdict on a right answer.

    Args:
        words: what was compared, and how the answer does beside par.
    """
    return Verdict(True, words)


def not_yet(words: str) -> Verdict:
    """Return the verdict on an answer that is not right.

    Args:
        words: the case, and what is wrong.
    """
    return Verdict(False, words)


class NotYet(Exception):
    """Ends the grading of an answer that gives nothing to compare: it raised, hung, or is no number.

    Args:
        words: what is wrong, for the verdict.
    """


def grader(judge: Callable[[Callable], Verdict]) -> Callable[[Callable], None]:
    """Make a function a grader: it prints its verdict, raises nothing of the answer's, and is in ``ranklab.check``.

    Args:
        judge: takes an answer and returns the verdict.

    Returns:
        A function of the same name, signature and docstring that returns nothing. It raises what ``ranklab`` itself
        has to say, for example that no ranks are running.
    """

    @functools.wraps(judge)
    def graded(answer: Callable) -> None:
        try:
            verdict = _with_what_is_missing(_judged(judge, answer), answer)
            print(verdict)
            tell_verdict(judge.__name__, verdict.right, verdict.words)
        finally:
            while _afterwards:
                print(_afterwards.pop(0))

    # A reader who asks for help sees that nothing is returned.
    graded.__signature__ = inspect.signature(judge).replace(return_annotation=None)  # type: ignore[attr-defined]
    return offered(graded)


def say_afterwards(sentence: str) -> None:
    """Say something that is no part of the verdict, after it.

    Args:
        sentence: what the reader has to do now.
    """
    _afterwards.append(sentence)


def offered(function: Callable) -> Callable:
    """Mark a helper of an exercise: readers find it in ``ranklab.check``.

    Args:
        function: stays as it is.
    """
    setattr(function, OFFERED, True)
    return function


def _judged(judge: Callable[[Callable], Verdict], answer: Callable) -> Verdict:
    try:
        return judge(answer)
    except NotYet as why:
        return not_yet(str(why))
    except RanklabError:
        raise
    except Exception as error:  # what an answer returned can raise wherever it is looked at: when compared, or shown
        return not_yet(f"What your answer returned cannot be judged: {describe(error)}")


def _with_what_is_missing(verdict: Verdict, answer: Callable) -> Verdict:
    """Add why a name that the notebook knows is unknown on the ranks."""
    missing = MISSING.search(verdict.words)
    names = getattr(inspect.unwrap(answer), "__globals__", {})
    if verdict.right or not missing or missing[1] not in names:
        return verdict
    name = missing[1]
    does = "import" if isinstance(names[name], ModuleType) else "define"
    told = f"Only the answer travels to the ranks, {name} stays in the notebook: {does} it inside the answer"
    end = "" if verdict.words.endswith((".", "!", "?")) else "."
    return not_yet(f"{verdict.words}{end} {told}, or in a %%px cell.")


def find_offered(modules: list[ModuleType]) -> dict[str, Any]:
    """Return what modules offer to readers, by name.

    Args:
        modules: of the chapters.

    Raises:
        ImportError: two modules offer the same name.
    """
    found: dict[str, Any] = {}
    for module in modules:
        for name, value in vars(module).items():
            if not getattr(value, OFFERED, False) or value.__module__ != module.__name__:
                continue
            if name in found:
                raise ImportError(
                    f"Two chapters offer ranklab.check.{name}: {found[name].__module__} and {module.__name__}. "
                    "Give one of them another name."
                )
            found[name] = value
    return found
