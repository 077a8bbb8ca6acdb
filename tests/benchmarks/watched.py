"""What a room costs its machine: memory and processor seconds of learners, hub and browser, and a model for more."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import psutil

EVERY = 3.0  # seconds between two looks; a process that lived shorter is not counted
MB = 2**20
KINDS = ("learners", "hub", "browser")
MODELLED = (6, 12, 30)
PROCESSORS = (2, 8, 16)
LESSON_MINUTES = 44  # of the chapter whose cells are run
SYSTEM = 1000  # MB that a server's system takes


class Watch:
    """Looks at all processes of a room while it runs.

    Args:
        hub: the running :class:`tests.benchmarks.hub.Hub`.
    """

    def __init__(self, hub: Any) -> None:
        self.hub, self.used = hub, {}
        self.free = self.least = psutil.virtual_memory().available
        self.began, self.busy = time.monotonic(), _busy()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._ended.wait(EVERY):
            self.look()

    def look(self) -> None:
        """Note the processor seconds of all processes, and how much memory the machine has left."""
        self.least = min(self.least, psutil.virtual_memory().available)
        for kind, processes in self.processes().items():
            for one in processes:
                try:
                    spent = one.cpu_times()
                    self.used[one.pid, one.create_time()] = (kind, spent.user + spent.system)
                except psutil.Error:
                    continue

    def processes(self) -> dict[str, list]:
        """The processes of each kind; a learner's are children of the hub, and are not the hub's."""
        learners = self.hub.running()
        known = {one.pid for one in learners}
        try:
            root = psutil.Process(self.hub.process.pid)
            hub = [one for one in (root, *root.children(recursive=True)) if one.pid not in known]
        except psutil.Error:
            hub = []
        known |= {one.pid for one in hub}
        browser = [one for one in psutil.Process().children(recursive=True) if one.pid not in known]
        return dict(zip(KINDS, (learners, hub, browser), strict=True))

    def seconds(self) -> dict[str, float]:
        """Processor seconds of each kind until now, and of everything else on the machine."""
        self.look()
        spent = {kind: sum(amount for of, amount in list(self.used.values()) if of == kind) for kind in KINDS}
        return spent | {"others": _busy() - self.busy - sum(spent.values())}

    def megabytes(self) -> dict[str, float]:
        """The memory of each kind, shared pages counted once a share."""
        return {kind: sum(map(_memory, processes)) / MB for kind, processes in self.processes().items()}

    @property
    def most(self) -> float:
        """MB by which the machine's free memory had shrunk when it was least."""
        return (self.free - self.least) / MB


def _busy() -> float:
    """Processor seconds that this machine has computed since it was started."""
    times = psutil.cpu_times()
    return sum(times) - times.idle - getattr(times, "iowait", 0) - times.guest - times.guest_nice


def _memory(process: Any) -> int:
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0


def model(
    learners: int, memory: dict[str, float], spent: dict[str, dict[str, float]], largest: float
) -> list[tuple[str, str]]:
    """Return the rows of what more learners need, from what these needed; browsers are elsewhere then.

    Args:
        learners: how many were measured.
        memory: MB of each kind, while all learners had ranks.
        spent: processor seconds of each kind, for "log in" and for "the lesson".
        largest: GB that one process may hold: somebody fills it.
    """
    each = memory["learners"] / learners
    of = {step: (kinds["learners"] + kinds["hub"]) / learners for step, kinds in spent.items()}
    gigabytes = [(SYSTEM + memory["hub"] + count * each) / 1024 + largest for count in MODELLED]
    busy = [count * of["the lesson"] / (60 * LESSON_MINUTES) for count in MODELLED]
    rows = [
        ("modelled: learners", _columns(MODELLED)),
        ("GB of memory, one process at its limit included", _columns(gigabytes)),
        (f"processors busy on average in {LESSON_MINUTES} minutes", _columns(busy, 1)),
    ]
    for step in of:
        for processors in PROCESSORS:
            waits = _columns([count * of[step] / processors for count in MODELLED])
            rows.append((f"seconds of {step}, all at once, on {processors}", waits))
    return rows


def _columns(figures: Sequence[float], digits: int = 0) -> str:
    return "".join(f"{figure:>8.{digits}f}" for figure in figures)
