"""How much of the processor other programs took, so that a measured time can be judged.

Counts seconds of processor time from two moments: those of the machine, less those of this process and of what it has
started. Steal time, which a virtual machine's neighbours take, counts as theirs.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

IDLE = ("idle", "iowait", "guest", "guest_nice")  # guest times are part of user times already


@dataclass(frozen=True)
class Moment:
    """The counters at one moment.

    Attributes:
        clock: seconds of ``time.monotonic``.
        machine: processor seconds that all programs have used, on all cores.
        own: processor seconds that this process and its descendants have used.
    """

    clock: float
    machine: float
    own: float


def now() -> Moment:
    """Read the counters; takes some milliseconds."""
    import psutil

    times = psutil.cpu_times()._asdict()
    machine = sum(seconds for name, seconds in times.items() if name not in IDLE)
    here = psutil.Process()
    own = 0.0
    for process in [here, *here.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            own += sum(process.cpu_times()[:4])  # its own, and those of its children that have ended
    return Moment(time.monotonic(), machine, own)


def taken_by_others(since: Moment, until: Moment) -> float:
    """Return the share of the machine's processors that other programs took between two moments, 0 to 1."""
    import psutil

    capacity = (until.clock - since.clock) * (psutil.cpu_count() or 1)
    others = (until.machine - since.machine) - (until.own - since.own)
    return min(1.0, max(0.0, others / capacity)) if capacity > 0 else 0.0


class Crowd:
    """How many threads want a processor at once, as the mean of several looks.

    What others take of the processors while we rest is more than they would leave us if we did not: so a share of the
    machine that we could have had is told by how many would have to share it.
    """

    def __init__(self) -> None:
        self._seen, self._looks = 0.0, 0

    def look(self) -> None:
        """Count those that are ready to run now; takes microseconds."""
        self._seen, self._looks = self._seen + _ready(), self._looks + 1

    def share(self, ours: int) -> float:
        """Return the share of the processors, 0 to 1, that so many of our processes would get beside the others."""
        others = self._seen / self._looks if self._looks else 0.0
        return min(1.0, (os.cpu_count() or 1) / (others + ours))


def _ready() -> float:
    """Return how many threads are ready to run, without this one; elsewhere than on Linux the mean of a minute."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].partition(b"/")[0]) - 1
    except (OSError, ValueError, IndexError):
        return os.getloadavg()[0]
