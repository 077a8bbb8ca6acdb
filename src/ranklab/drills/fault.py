"""One fault of the catalogue, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ENDED, STOPPED, ANYWHERE = "ended", "stopped", "anywhere"  # where a guilty rank may be, besides in a line


def pair(rank: int) -> int:
    """Return the rank with which a rank makes a pair: 0 with 1, 2 with 3."""
    return rank ^ 1


@dataclass(frozen=True)
class Situation:
    """What the seed has drawn.

    Attributes:
        guilty: the rank that is to blame; −1 where none is.
        step: the step in which it goes wrong, 1 to 4.
        size: how many ranks there are.
    """

    guilty: int
    step: int
    size: int

    @property
    def other(self) -> int:
        """A rank that is not to blame: the next one."""
        return (self.guilty + 1) % self.size

    @property
    def partner(self) -> int:
        """The rank that makes a pair with the guilty one."""
        return pair(self.guilty)

    def by_step(self, rank: int, wrong: Any, right: Any) -> list[Any]:
        """Return what a rank has for each step: what is right, and on the guilty rank what is wrong in one step."""
        return [wrong if rank == self.guilty and step == self.step else right for step in range(6)]


def nothing(rank: int, at: Situation) -> dict[str, Any]:
    """Return what a rank's part of the data holds besides rows: nothing."""
    return {}


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        cause: what a reader answers.
        family: causes of one family look alike; a mistake within it is told more.
        sign: how one sees that it is this cause, a sentence.
        why: what happened, a sentence in the past tense; ``{rank}``, ``{step}`` and ``{line}`` are filled in.
        lines: the part of the program that is at fault, by slot, with marks; see :mod:`.program`.
        stands: where the guilty rank is at the end: "own" or "barrier" (a line), "ended", "stopped", or
            "anywhere", where the ranks end each other in an order of their own.
        part: what the file of a rank holds besides its rows, or rows of its own.
        outside: the signal that the guilty rank gets from outside; 0 for none.
        decoy: whether its lines are short, and harmless where no rank is guilty: other programs may have them.
        paired: whether the guilty rank lets down its partner; the other two ranks have no part in it, even where they
            wait in the same line.
    """

    cause: str
    family: str
    sign: str
    why: str
    lines: Mapping[str, str] = field(default_factory=dict)
    stands: str = "own"
    part: Callable[[int, Situation], dict[str, Any]] = nothing
    outside: int = 0
    decoy: bool = False
    paired: bool = False


def rows(count: int) -> list[list[float]]:
    """Return rows of three numbers and their goal."""
    return [[float(n % 3), float(n % 5), 1.0, float(n % 4)] for n in range(count)]


def spoilt(step: int, value: float, steps: int = 6) -> list[list[float]]:
    """Return all rows of a rank, the first number of one step's batch being this value."""
    made = rows(4 * steps)
    made[4 * step][0] = value
    return made
