"""How long processes wait for a processor, so that a deadline can count what they could have used, not the clock.

Linux counts, for each thread, the nanoseconds in which it could have run and another one did: the second number of
``/proc/<pid>/task/<tid>/schedstat`` (Documentation/scheduler/sched-stats.rst). A thread that sleeps, or waits for a
message, adds nothing to it. Where the system does not count (macOS, some sandboxes), nobody seems to wait.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

SLOWEST = 0.05  # a fair clock goes at least this fast, so that every deadline comes


def waited_for_processor(pid: int) -> float:
    """Return the seconds that the threads of a process have waited for a processor, 0 where that is not known.

    Args:
        pid: of a process on this machine; 0 for none. Threads that have ended no longer count.
    """
    waited = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            waited += _nanoseconds(task / "schedstat")
    except OSError:  # no such process, or no /proc
        return 0.0
    return waited / 1e9


def _nanoseconds(schedstat: Path) -> int:
    try:
        return int(schedstat.read_text().split()[1])
    except (OSError, ValueError, IndexError):  # the thread has ended, or the kernel does not count
        return 0


class FairClock:
    """A clock that stands still while one of some processes waits for a processor.

    Processes that work together wait for one another: where one is kept from the processor, all are. So the clock
    leaves out, between two looks, the longest wait of any of them. It has to be looked at every second or so.

    Args:
        pids: of the processes that have to do something before a deadline; 0 counts for none.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._waited = {pid: waited_for_processor(pid) for pid in pids if pid}
        self._looked = time.monotonic()
        self._now = 0.0

    def __call__(self) -> float:
        """Return the seconds since the clock was made in which all of them could run."""
        now = time.monotonic()
        passed, self._looked = now - self._looked, now
        lost = 0.0
        for pid, before in self._waited.items():
            self._waited[pid] = waited_for_processor(pid)
            lost = max(lost, self._waited[pid] - before)
        self._now += max(passed - lost, SLOWEST * passed)
        return self._now
