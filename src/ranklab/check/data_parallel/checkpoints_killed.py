"""Grader of the chapter *checkpoints*: a save that survives a kill. Its other graders stand in ``checkpoints``."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..grading import Raised, on_ranks, safely
from ..verdict import Verdict, correct, grader, not_yet

ELSEWHERE = "elsewhere"  # a file of another folder gets the name of the snapshot
WRITING = ("open", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate", "shutil.copyfile", "shutil.move")
NUMBERS = 50_000  # in the state that is saved: 200 kB


@grader
def surviving_save(answer: Callable[[dict, str], None]) -> Verdict:
    """Grade a save that is killed at many places: what is left under the name of the snapshot has to load.

    Args:
        answer: ``save(state, path)`` writes a dict with tensors. It runs in forked processes of rank 0 that are killed
            when a file has reached a size, or before a file is opened, renamed or removed.

    Exercise of the chapter *checkpoints*.
    """
    kills, problem = on_ranks(_killed, answer, patience=8)[0]
    return not_yet(problem) if problem else correct(f"{kills} kills, and each left a snapshot that loads.")


def _killed(answer: Callable) -> tuple[int, str]:
    """Runs on a rank: how often the answer was killed, and what went wrong."""
    if os.environ["RANK"] != "0":
        return 0, ""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "job.pt"))
        _write_old(path)
        result = safely(answer, _state(1), path)
        if isinstance(result, Raised):
            return 0, f"your save raised {result.words}"
        if (left := _left(path)) != "new":
            holds = "nothing that loads" if left == "torn" else "the old state still"
            return 0, f"Without any kill, the file holds {holds}."
        _write_old(path)
        events = _forked(answer, path, _Trap())
        if ELSEWHERE in events:
            return 0, (
                "The new file comes from another folder. On another file system os.replace refuses that, and a copy "
                "can be killed halfway: write the new file beside the old one."
            )
        size = os.path.getsize(path)
        places = [_Trap(limit=part * size // 4) for part in (0, 1, 2, 3)]
        for event, name in enumerate(events, start=1):
            places += [_Trap(event, name=name), _Trap(event, size // 2, name)]
        for trap in places:
            _write_old(path)
            _forked(answer, path, trap)
            if (left := _left(path)) == "torn":
                exists = "holds half of the new snapshot" if os.path.exists(path) else "is gone"
                return 0, f"Killed {trap}: the file {exists}, and the old one is lost."
            again = safely(answer, _state(1), path)
            if isinstance(again, Raised):
                return 0, f"After a kill {trap}, the next save raised {again.words}"
            if (left := _left(path)) != "new":
                holds = "nothing that loads" if left == "torn" else "the old state"
                return 0, f"After a kill {trap}, the next save leaves {holds}."
    return len(places), ""


def _state(number: int) -> dict:
    import torch

    return {"step": number, "weights": torch.full((NUMBERS,), float(number))}


def _write_old(path: str) -> None:
    import torch

    torch.save(_state(0), path)


def _left(path: str) -> str:
    """Return "old", "new" or "torn": what is under the name of the snapshot."""
    import torch

    try:
        found = torch.load(path)
        whole = bool((found["weights"] == found["step"]).all())
    except Exception:
        return "torn"
    return ("old", "new")[found["step"]] if whole else "torn"


class _Trap:
    """Kills the process at an event that changes files, or at a size of file from that event on (0: from the start)."""

    def __init__(self, event: int = 0, limit: int | None = None, name: str = "") -> None:
        self.event, self.limit, self.name, self.heard = event, limit, name, list[str]()
        self.path = ""  # of the snapshot

    def __str__(self) -> str:
        return f"before {self.name}" if self.limit is None else "while it writes a file"

    def arm(self, path: str) -> None:
        self.path = os.path.realpath(path)
        sys.addaudithook(self._heard)  # there is no way to take it off, and the process ends soon
        if not self.event and self.limit is not None:
            self._limit()

    def _limit(self) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and a write would fail instead
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit or 0, hard))

    def _heard(self, name: str, arguments: tuple) -> None:
        if name not in WRITING or (name == "open" and not _writes(arguments)):
            return
        if name == "os.rename" and self._from_elsewhere(*arguments[:2]):
            name = ELSEWHERE
        self.heard.append(name)
        if len(self.heard) == self.event:
            if self.limit is None:
                os.kill(os.getpid(), signal.SIGKILL)
            self._limit()

    def _from_elsewhere(self, source: str, target: str) -> bool:
        folder = os.path.dirname(self.path)
        source, target = (os.path.realpath(os.fsdecode(each)) for each in (source, target))
        return target == self.path and os.path.commonpath([source, folder]) != folder


def _writes(arguments: tuple) -> bool:
    """Whether an audit event "open" (path, mode, flags) is about writing."""
    flags = arguments[2] if isinstance(arguments[2], int) else 0
    return bool(flags & (os.O_WRONLY | os.O_RDWR))


def _forked(answer: Callable, path: str, trap: _Trap) -> list[str]:
    """Save in a process of its own; return the events that it had, none where it was killed."""
    state, (hear, tell) = _state(1), os.pipe()
    child = os.fork()
    if child == 0:  # it computes nothing with torch, whose threads stayed behind
        with contextlib.suppress(BaseException):
            trap.arm(path)
            answer(state, path)
        os.write(tell, " ".join(trap.heard[:20]).encode())
        os._exit(0)
    os.close(tell)
    with open(hear) as told:
        events = told.read().split()
    os.waitpid(child, 0)
    return events
