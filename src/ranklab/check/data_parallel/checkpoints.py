"""Graders of the chapter *checkpoints*: a sampler that resumes, the item that was lost. See ``checkpoints_killed``."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable
from typing import Any

from ..grading import Raised, asked, on_ranks, safely
from ..verdict import Verdict, correct, grader, not_yet

SOUGHT = [(12, 1, 4), (12, 0, 0), (16, 2, 8), (10, 1, 4), (5, 0, 2), (10, 0, 0)]  # rows, epoch, rows that were seen
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


def _padded_from_the_rest(case: tuple, rank: int, size: int) -> list[int]:
    """The same, where padding repeats rows that are left and not the first of the epoch: that is right as well."""
    left = _rest(case, 0, 1)
    return (left * size)[: -(-len(left) // size) * size][rank::size]


def _wrong_rest(got: Any, case: tuple, rank: int, size: int) -> str:
    """Say what is wrong with what one rank would read, "" where nothing is."""
    if isinstance(got, Raised):
        return f"your class raised {got.words}"
    rows, count, following, untouched = got
    length, epoch, seen = case
    wanted, whole = _rest(case, rank, size), _rest((length, epoch, 0), rank, size)
    if rows not in (wanted, _padded_from_the_rest(case, rank, size)):
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
            named, problem = asked(answer, copy.deepcopy(never), copy.deepcopy(resumed))
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
