"""How long a hang waits: the seconds that the notebook gives its ranks, and the clock on which they are counted.

A rank that does not answer may be stuck, or may only not have been let: with thirty learners on one machine a rank gets
a processor now and then. So these seconds are counted on a clock that stands still while the rank, or what lies between
it and the notebook, is ready to run and has no processor. A rank is ended when it has had one and did not use it.
On a quiet machine this is the clock on the wall.
"""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections.abc import Callable, Iterable, Mapping

from .starving import FairClock, Starvation

DEADLINE = 60.0  # of a cell, and of a program under torchrun, where the reader names none
LONGEST = 30 * 86_400.0  # a month: what waits for longer overflows in the libraries below
GRACE = 1.0  # after one rank has raised, the others get this long to finish before they count as waiting for it
REST = 0.3  # ranks that exchange messages come to rest in it; a small collective takes a thousandth of it
COME_BACK = 1.0  # from an interrupt, a cut connection or a kill until the notebook hears of it
LOADER = (
    6.0  # the same for a DataLoader, which waits 5 s for its workers (MP_STATUS_CHECK_INTERVAL in torch/utils/data)
)
LEAVE = 5.0  # leaving a group takes milliseconds
ANSWER = 1.0  # a watchdog answers in microseconds
FIRST_ANSWER = 0.1  # how long a watchdog is waited for before anybody looks at the load
ABORT = 0.8  # of a group, before its watchdog answers all the same; less than ANSWER
OUTPUT = 2.0  # the last prints of a rank that is done
EXIT_STATUS = 2.0  # the controller can hear of a death before the system hands out how the process ended
PULSE = 0.1  # between two looks whether a rank that waits is ever woken
LIVE_ANSWER = 0.3  # what is shown while a cell runs can do without an answer
LOOK = 1.0  # between two looks whether there is still a controller
BETWEEN_LOOKS, SHORTEST = 0.25, 0.02  # at the load, while ranks are waited for
POLL = 0.1  # between two looks at what the reader and the ranks have done
CEILING = 60.0  # on the wall: nobody waits longer than that for ranks that are freed, however busy the machine is
FAIR_CEILING = 300.0  # the same for a right answer that a grader has called


class Patience:
    """Counts for each rank how long it could have answered, and waits by that.

    Args:
        pids: the process of each rank, by rank; 0 where it is on another computer, which tells nothing of its load.
        helpers: processes that an answer passes on its way, besides this one.
        ceiling: seconds on the wall after which patience ends in any case.
    """

    def __init__(self, pids: Mapping[int, int], helpers: Iterable[int] = (), ceiling: float = CEILING) -> None:
        self._pids = dict(pids)
        self._way = {os.getpid(), *helpers}
        self._starvation = Starvation({*self._pids.values(), *self._way} - {0})
        self._had = dict.fromkeys(self._pids, 0.0)
        self._counted = time.monotonic()
        self._until = self._counted + ceiling

    def _count(self) -> None:
        self._counted = time.monotonic()
        elapsed, waited = self._starvation.look()
        on_the_way = max(waited.get(pid, 0.0) for pid in self._way)
        for rank, pid in self._pids.items():
            self._had[rank] += elapsed - max(on_the_way, waited.get(pid, 0.0))

    def renew(self) -> None:
        """Begin to count anew; the ceiling stays."""
        self._count()
        self._had = dict.fromkeys(self._pids, 0.0)

    def left(self, ranks: Iterable[int], seconds: float) -> float:
        """Return how many of these seconds one of the ranks still has; 0 where all had theirs, or at the ceiling."""
        now = time.monotonic()
        if now >= self._until:
            return 0.0
        since = now - self._counted
        # Nobody can have had more than passed. A look reads some hundred files, which many notebooks cannot do at once.
        least = max((seconds - self._had[rank] - since for rank in ranks), default=0.0)
        if least > 0 and since < BETWEEN_LOOKS:
            return least
        self._count()
        return max((max(0.0, seconds - self._had[rank]) for rank in ranks), default=0.0)

    def wait(self, replies: Mapping[int, concurrent.futures.Future], seconds: float) -> bool:
        """Wait for replies until each rank that has not sent one could have.

        Args:
            replies: what is waited for, by rank.
            seconds: what each rank gets.

        Returns:
            Whether all replies are there.
        """
        self.renew()
        while pending := {rank: reply for rank, reply in replies.items() if not reply.done()}:
            left = self.left(pending, seconds)
            if not left:
                return False
            concurrent.futures.wait(pending.values(), timeout=_nap(left))
        return True

    def pause(self, seconds: float) -> None:
        """Sleep until each rank could have worked for so long."""
        self.renew()
        while left := self.left(self._pids, seconds):
            time.sleep(_nap(left))


def overdue(seconds: float, pids: Iterable[int]) -> Callable[[], bool]:
    """Return what says, from then on, whether this process and others have had so many seconds from now.

    Args:
        seconds: on the wall, and of these the ones in which all of them could run.
        pids: the others that have to do something before.
    """
    until, clock = time.monotonic() + seconds, FairClock([os.getpid(), *pids])
    return lambda: time.monotonic() > until and clock() > seconds


def _nap(left: float) -> float:
    """Return the seconds until the next look: the system counts by the tick, so a look has to cover several."""
    return min(BETWEEN_LOOKS, max(left, SHORTEST))
