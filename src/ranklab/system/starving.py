"""How long a process was ready to run and was not let, because others had the processors.

Linux tells of every thread how long it ran and how long it waited for a processor: ``/proc/<pid>/task/<tid>/schedstat``
(Documentation/scheduler/sched-stats.rst), updated when it is given one. Elsewhere the load of the machine has to do.
Standard library, and psutil where Linux's files are missing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
SLOWEST = 0.05  # a fair clock goes at least this fast, so that every deadline comes
IDLE_ENOUGH = 0.05  # of the machine: with that much left over nobody waits for a processor


class Times(NamedTuple):
    """What the system tells of a thread.

    Attributes:
        ran: nanoseconds on a processor.
        waited: nanoseconds ready to run, but not let; told when it is let again.
        ready: whether it is ready to run now, or waits for a disk.
        slept: how often it has gone to sleep by itself; looked up where it is ready.
    """

    ran: int
    waited: int
    ready: bool
    slept: int = -1


class Starvation:
    """Follows some processes, and says how much of the time they waited for a processor.

    Args:
        pids: the processes; one that has ended never waits.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = sorted(set(pids))
        self._told = _is_told()
        self._clock, self._stolen = time.monotonic(), _stolen()
        self._threads = {pid: _threads(pid) for pid in self._pids} if self._told else {}
        if not self._told:
            _idle_share()  # psutil counts from the call before

    def look(self) -> tuple[float, dict[int, float]]:
        """Return the seconds since the last look, and for each process how many of them it waited.

        A process waited as long as that one of its threads which waited longest.
        """
        clock = time.monotonic()
        elapsed, self._clock = clock - self._clock, clock
        if not self._told:
            return elapsed, dict.fromkeys(self._pids, elapsed * _busy_share())
        stolen, before = _stolen(), self._stolen
        self._stolen = stolen
        waited = {}
        for pid in self._pids:
            now, earlier = _threads(pid), self._threads[pid]
            longest = max((_waited(now[tid], earlier.get(tid), elapsed) for tid in now), default=0.0)
            waited[pid] = min(elapsed, longest + stolen - before)
            self._threads[pid] = now
        return elapsed, waited


class FairClock:
    """A clock that stands still while one of some processes waits for a processor.

    Processes that work together wait for one another: where one is kept from the processor, all are. So the clock
    leaves out, between two looks, the longest wait of any of them. It has to be looked at every second or so.

    Args:
        pids: of the processes that have to do something before a deadline; 0 counts for none.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._starvation = Starvation(pid for pid in pids if pid)
        self._now = 0.0

    def __call__(self) -> float:
        """Return the seconds since the clock was made in which all of them could run."""
        elapsed, waited = self._starvation.look()
        self._now += max(elapsed - max(waited.values(), default=0.0), SLOWEST * elapsed)
        return self._now


def _waited(now: Times, before: Times | None, elapsed: float) -> float:
    before = before or Times(0, 0, False)
    if now.ready and (now.ran, now.waited) == (before.ran, before.waited):
        return elapsed  # ready all the time, and not once let
    if now.ready and before.ready and now.slept == before.slept >= 0:
        return max(0.0, elapsed - (now.ran - before.ran) / 1e9)  # it waits even now, and is not told of that yet
    return min(elapsed, (now.waited - before.waited) / 1e9)


def _is_told() -> bool:
    """Say whether this system tells how long a thread waits; a kernel may be built without, and shows zeros then."""
    times = _threads(os.getpid()).values()
    return any(each.ran for each in times)


def _threads(pid: int) -> dict[int, Times]:
    """Return what is told of each thread of a process, by its id; nothing of one that has ended."""
    found = {}
    folder = f"{PROC}/{pid}/task"
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    for name in names:
        try:
            ran, waited, _ = _read(f"{folder}/{name}/schedstat").split()
            state = _read(f"{folder}/{name}/stat").rpartition(b")")[2].split()[0]
        except (OSError, ValueError, IndexError):  # the thread has ended
            continue
        ready = state in b"RD"
        found[int(name)] = Times(int(ran), int(waited), ready, _slept(f"{folder}/{name}") if ready else -1)
    return found


def _slept(thread: str) -> int:
    """Return how often a thread has gone to sleep by itself, -1 where it has ended."""
    try:
        return int(_read(f"{thread}/status").partition(b"\nvoluntary_ctxt_switches:")[2].split()[0])
    except (OSError, ValueError, IndexError):
        return -1


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _stolen() -> float:
    """Return the seconds that other virtual machines have taken from each processor of this one."""
    try:
        fields = _read(f"{PROC}/stat").split(b"\n", 1)[0].split()
        return int(fields[8]) / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)
    except (OSError, ValueError, IndexError):
        return 0.0


def _busy_share() -> float:
    """Return the share of the time that a process waits on this machine, told by its load."""
    if _idle_share() > IDLE_ENOUGH:
        return 0.0
    cores = os.cpu_count() or 1
    return 1 - cores / max(os.getloadavg()[0], cores)


def _idle_share() -> float:
    import psutil

    return psutil.cpu_times_percent(interval=None).idle / 100
