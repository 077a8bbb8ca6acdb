"""The clock of a launch: it stands still while torchrun and its ranks wait for processors that other programs have.

With thirty learners on one machine, torchrun needs a minute only to import torch. What the ranks of a launch take from
one another counts: a program that spins on more ranks than there are cores ends at its deadline all the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from ..system import load
from ..system.starving import SLOWEST, Starvation
from .family import family

LOOK = 1.0  # seconds between two looks at all processes, which take some milliseconds


class LaunchClock:
    """Counts the seconds that some processes, and what they start, could use.

    Args:
        pids: the processes that were started; descendants of this one.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._used, self._looked = 0.0, time.monotonic()
        self._load = load.now()
        self._starvation = Starvation(family(self._pids))

    def __call__(self) -> float:
        """Return the seconds since the clock was made; those since the last look count in full."""
        if time.monotonic() - self._looked >= LOOK:
            self._look()
        return self._used + time.monotonic() - self._looked

    def _look(self) -> None:
        elapsed, waited = self._starvation.look()
        before, self._load = self._load, load.now()
        lost = min(max(waited.values(), default=0.0), elapsed * load.taken_by_others(before, self._load))
        self._used += max(elapsed - lost, SLOWEST * elapsed)
        self._looked = time.monotonic()
        self._starvation = Starvation(family(self._pids))
