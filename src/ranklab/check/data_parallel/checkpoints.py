"""Graders of the chapter *checkpoints*: a sampler that resumes, a save that survives a kill, the item that was lost."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..grading import Raised, asked, on_ranks, safely
from ..verdict import Verdict, correct, grader, not_yet

SOUGHT = [(12, 1, 4), (12, 0, 0), (16, 2, 8), (10, 1, 4), (5, 0, 2), (10, 0, 0)]  # rows, epoch, rows that were seen
NUMBERS = 50_000  # in the state that is saved: 200 kB
WRITING = ("open", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate", "shutil.copyfile", "shutil.move")
ITEMS = ("model", "optimizer", "scheduler", "epoch", "batch", "generators", "nothing")
EPOCH, STEPS = 8, 24


# -- resuming_sampler --------------------------------------------------------------------------------------------


@grader
def resuming_sampler(answer: Callable[..., Any]) -> Verdict:
    """Grade a sampler that goes on in the middle of an epoch, also on another number of ranks.

    Args:
        answer: ``answer(length, ranks, rank, seed)`` makes a sampler on every rank, for every world size up to that of
            the running world. After ``start(epoch, seen)`` iterating gives the row numbers that are left for the rank,
            and ``len`` counts them.

    Exercise of the chapter *checkpoints*.
    """
    found = on_ranks(_sought, answer)
    for size in range(1, len(found) + 1):
        for case in SOUGHT:
            for rank in range(size):
                if problem := _wrong_rest(found[rank][size, case], case, rank, size):
                    length, epoch, seen = case
                    return not_yet(
                        f"With {length} rows on {size} rank{'s' * (size > 1)}, start({epoch}, {seen}): "
                        f"rank {rank}: {problem}"
                    )
    tried = len(found) * len(SOUGHT)
    return correct(f"{tried} resumes on 1 to {len(found)} ranks, no row is left out, and only padding repeats one.")


def _sought(answer: Callable) -> dict[tuple, Any]:
    """Runs on a rank: its rows and their count for every case, then those of the whole next epoch."""
    import torch

    def look(size: int, case: tuple) -> tuple:
        length, epoch, seen = case
        sampler = answer(length, size, rank, 3)
        sampler.start(epoch, seen)
        rest = [int(row) for row in sampler]
        count = len(sampler)
        sampler.start(epoch + 1, 0)
        return rest, count, [int(row) for row in sampler], torch.equal(before, torch.get_rng_state())

    rank, world_size, found = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), {}
    for size in range(rank + 1, world_size + 1):
        for case in SOUGHT:
            before = torch.get_rng_state()
            found[size, case] = safely(look, size, case)
            torch.set_rng_state(before)
    return found


def _rest(case: tuple, rank: int, size: int, seed: int = 3) -> list[int]:
    """What is left for a rank: the shared order from the first row on that nobody has seen, dealt and padded."""
    import torch

    length, epoch, seen = case
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed + epoch)).tolist()
    end = seen + -(-(length - seen) // size) * size
    return (order * (size + 1))[seen + rank : end : size]


def _wrong_rest(got: Any, case: tuple, rank: int, size: int) -> str:
    """Say what is wrong with what one rank would read, "" where nothing is."""
    if isinstance(got, Raised):
        return f"your class raised {got.words}"
    rows, count, following, untouched = got
    length, epoch, seen = case
    wanted, whole = _rest(case, rank, size), _rest((length, epoch, 0), rank, size)
    if rows != wanted:
        unpadded = _rest((length, epoch, 0), 0, 1)[seen:][rank::size]
        slips = [
            (whole[seen:], "You skip that many rows on each rank; seen counts the rows of all ranks together."),
            (whole, "Nothing was skipped."),
            (_rest((length, 0, seen), rank, size), "The order ignores epoch: seed the generator with seed + epoch."),
            (_rest(case, rank, size, seed=0), "The order ignores seed: seed the generator with seed + epoch."),
            (unpadded, "Some ranks are a row short: repeat rows from the start of the order."),
            (_rest((length, epoch, 0), 0, 1)[seen:], "Every rank reads all that is left, not every N-th row."),
        ]
        told = next((f" {sentence}" for slip, sentence in slips if rows == slip), "")
        return f"your rows are {rows}, expected {wanted}.{told}"
    if count != len(wanted):
        return f"the rows are right, but len() returns {count} instead of {len(wanted)}."
    if following != _rest((length, epoch + 1, 0), rank, size):
        return f"the rows are right, but after start({epoch + 1}, 0) the next epoch still leaves out rows of this one."
    drew = "the rows are right, but your class drew from torch's global generator: give it a torch.Generator."
    return "" if untouched else drew


# -- surviving_save ----------------------------------------------------------------------------------------------


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

    def __str__(self) -> str:
        return f"before {self.name}" if self.limit is None else "while it writes a file"

    def arm(self) -> None:
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
        self.heard.append(name)
        if len(self.heard) == self.event:
            if self.limit is None:
                os.kill(os.getpid(), signal.SIGKILL)
            self._limit()


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
            trap.arm()
            answer(state, path)
        os.write(tell, " ".join(trap.heard[:20]).encode())
        os._exit(0)
    os.close(tell)
    with open(hear) as told:
        events = told.read().split()
    os.waitpid(child, 0)
    return events


# -- lost_item ---------------------------------------------------------------------------------------------------


@grader
def lost_item(answer: Callable[[list[dict], list[dict]], str]) -> Verdict:
    """Grade a detective: from the logs of two runs, name what the resume has lost.

    Args:
        answer: ``lost(never, resumed)`` gets two lists of dicts with step, rate, rows, dropped and loss, the first from
            a run of 24 steps that never stopped, and returns one of the items. It runs in the notebook.

    Exercise of the chapter *checkpoints*.
    """
    tried = 0
    for stop in (11, 18):
        never, saved = _run(stop)
        for item in ITEMS:
            tried += 1
            resumed, _ = _run(stop, saved, item)
            named, problem = asked(answer, never, resumed)
            where = f"Stopped after step {stop}, {item if item == 'nothing' else f'the {item}'} lost"
            if problem:
                return not_yet(f"{where}: {problem}")
            if named != item:
                return not_yet(f"{where}: your answer is {named!r}.{_hint(never, resumed, item)}")
    return correct(f"{tried} of {tried} found.")


def _hint(never: list[dict], resumed: list[dict], item: str) -> str:
    then, now = never[resumed[0]["step"]], resumed[0]
    apart = [key for key in then if then[key] != now[key]]
    if apart:
        return f" In the first step after the stop, these are different: {', '.join(apart)}."
    return " The first step after the stop is equal: look at the later ones." if item == "optimizer" else ""


def _run(stop: int, saved: dict | None = None, lost: str = "nothing") -> tuple[list[dict], dict]:
    """Return the log of a job with one weight and momentum, and what a snapshot after ``stop`` steps has to hold."""
    draw, log, kept = random.Random(1), list[dict](), dict[str, Any]()
    state: dict[str, Any] = dict.fromkeys(ITEMS[:5], 0) | {"generators": draw.getstate()}
    begin = 0
    if saved is not None:
        state |= {name: value for name, value in saved.items() if name != lost}
        begin = stop
    draw.setstate(state["generators"])
    for step in range(begin, STEPS):
        if step == stop:
            kept = {**state, "generators": draw.getstate()}
        order = random.Random(100 + state["epoch"]).sample(range(32), 32)
        rows = order[4 * state["batch"] : 4 * state["batch"] + 4]
        dropped = sorted(draw.sample(range(16), 5))
        goal = sum(rows) / 40 + sum(dropped) / 90
        rate = 0.1 * 0.9 ** state["scheduler"]
        loss = (state["model"] - goal) ** 2
        log.append({"step": step, "rate": rate, "rows": rows, "dropped": dropped, "loss": loss})
        state["optimizer"] = 0.9 * state["optimizer"] + 2 * (state["model"] - goal)
        state["model"] -= rate * state["optimizer"]
        state["scheduler"] += 1
        state["batch"] += 1
        if state["batch"] == EPOCH:
            state["epoch"], state["batch"] = state["epoch"] + 1, 0
    return log, kept
