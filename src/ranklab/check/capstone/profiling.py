"""Graders of the chapter *profiling*: time that nothing hides, and the fault behind a recording."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from ..grading import asked, number
from ..verdict import NotYet, Verdict, correct, grader, not_yet

Span = tuple[float, float]
Row = tuple[int, str, float, float]
Fault = tuple[str, "int | None"]

# -- exposed_time ------------------------------------------------------------------------------------------------

SPANS: tuple[tuple[str, list[Span], list[Span]], ...] = (
    ("one sum and no work beside it", [(0, 10)], [(20, 24)]),
    ("a sum that work hides wholly", [(0, 10)], [(0, 10)]),
    ("work that overlaps work", [(0, 10)], [(2, 6), (4, 8)]),
    ("sums that overlap", [(0, 10), (5, 15)], [(0, 3)]),
    ("no sum", [], [(0, 5)]),
    ("spans that are not in order", [(30, 40), (0, 4)], [(35, 50), (2, 3)]),
    ("sums that follow one another", [(0, 5), (5, 10)], [(10, 12)]),
    ("everything that overlaps", [(0, 10.5), (0, 10), (8, 20.25)], [(5, 9), (6, 12.5), (15, 16)]),
)


@grader
def exposed_time(answer: Callable[[list[Span], list[Span]], float]) -> Verdict:
    """Grade how long a rank sends while it computes nothing.

    Args:
        answer: ``exposed_time(sums, work)`` gets two lists of ``(begin, end)`` in ms, in any order, with overlaps, and
            returns for how many ms at least one sum runs and no work does.

    Exercise of the chapter *profiling*.
    """
    for words, sums, work in SPANS:
        given = number(answer, f"With {words}", list(sums), list(work))
        wanted = _length([*sums, *work]) - _length(work)
        if not abs(given - wanted) <= 1e-6:  # nan is wrong, too
            told = f"With {words}: your answer is {given:g}, and {wanted:g} would be right."
            return not_yet(told + _slip(given, sums, work))
    return correct(f"{len(SPANS)} of {len(SPANS)} cases.")


def _length(spans: Sequence[Span]) -> float:
    """Return for how long at least one of the spans runs."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _slip(given: float, sums: list[Span], work: list[Span]) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    long = sum(end - begin for begin, end in sums)
    common = sum(max(0.0, min(e, right) - max(b, left)) for b, e in sums for left, right in work)
    either = _length([*sums, *work])
    slips = [
        (long - common, "Where two spans of a list overlap, you count that time twice."),
        (max(0.0, long - common), "Where two spans of a list overlap, you count that time twice."),
        (_length(sums), "That is the time of the sums, hidden or not."),
        (long, "That is the time of the sums, added up, hidden or not."),
        (long - (_length(sums) + _length(work) - either), "Sums that overlap are counted twice."),
        (_length(sums) - common, "Work that overlaps is subtracted twice."),
        (_length(sums) + _length(work) - either, "That is the time which work hides."),
        (_length(work) - _length(sums), "Spans have a place in time: it is not enough to subtract lengths."),
        (max(0.0, _length(sums) - _length(work)), "Spans have a place in time: subtract only where both run."),
    ]
    return next((f" {sentence}" for slip, sentence in slips if abs(given - slip) < 1e-6), "")


# -- diagnose ----------------------------------------------------------------------------------------------------

FAULTS = ("none", "loader", "slow rank", "bucket")
SIZES = (2, 3, 4)
DRAWS = 2  # runs of each fault on each number of ranks
STEPS, GRADIENTS, BUCKETS = 5, 12, 4
LOAD, FORWARD, BACKWARD, SUMS, OPTIMIZER = 4.0, 20.0, 40.0, 24.0, 5.0  # ms
SLOW, STARVED, HICCUP = 3.0, 15.0, 60.0  # factors, and ms


@grader
def diagnose(answer: Callable[[list[Row]], Fault]) -> Verdict:
    """Grade a function that finds the fault which was planted into a recording.

    Args:
        answer: ``diagnose(rows)`` gets rows ``(rank, name, begin, end)`` in ms, in the order of their begin, as
            ``spans`` of the chapter gives them, of five steps on 2, 3 or 4 ranks. It returns ``("loader", rank)``,
            ``("slow rank", rank)``, ``("bucket", None)`` or ``("none", None)``.

    Exercise of the chapter *profiling*.
    """
    runs = [(size, fault, draw) for draw in range(DRAWS) for size in SIZES for fault in FAULTS]
    random.Random(0).shuffle(runs)
    for place, (size, fault, draw) in enumerate(runs, 1):
        rows, planted, hiccup = _recording(size, fault, draw)
        given, problem = asked(answer, list(rows))
        where = f"Run {place} of {len(runs)}, {size} ranks"
        if problem:
            raise NotYet(f"{where}: {problem}")
        if isinstance(given, list):
            given = tuple(given)
        if given != planted:
            told = f"{where}: your answer is {given!r}, planted is {planted!r}."
            return not_yet(told + _misread(given, planted, hiccup, rows))
    return correct(f"{len(runs)} of {len(runs)} runs, on 2, 3 and 4 ranks.")


def _recording(size: int, fault: str, draw: int) -> tuple[list[Row], Fault, Fault]:
    """Return the rows of one imitated run, what was planted, and what the hiccup of one step looks like."""
    dice = random.Random(f"{size} {fault} {draw}")
    ill = dice.randrange(size)
    hiccup = dice.randrange(size), dice.randrange(STEPS), dice.choice(["load", "forward"])
    buckets = 1 if fault == "bucket" else BUCKETS
    rows: list[Row] = []
    clocks = [0.0] * size
    for step in range(STEPS):
        begins, calls = list(clocks), []
        backward = []
        for rank in range(size):
            speed = SLOW if (fault, rank) == ("slow rank", ill) else 1.0
            takes = {
                "load": LOAD * (STARVED if (fault, rank) == ("loader", ill) else 1.0),
                "forward": FORWARD * speed,
            }
            for name in takes:
                late = HICCUP if hiccup == (rank, step, name) else 0.0
                end = clocks[rank] + takes[name] * dice.uniform(0.85, 1.15) + late
                rows.append((rank, name, clocks[rank], end))
                clocks[rank] = end
            piece = BACKWARD * speed * dice.uniform(0.9, 1.1) / GRADIENTS
            ready = [clocks[rank] + piece * (number + 1) for number in range(GRADIENTS)]
            rows += [(rank, "torch::autograd::AccumulateGrad", moment - 0.2, moment) for moment in ready]
            every = GRADIENTS // buckets
            calls.append(ready[every - 1 :: every])
            backward.append(clocks[rank])
        done = 0.0
        for bucket in range(buckets):
            done = max(done, *(own[bucket] for own in calls)) + SUMS / buckets
            for rank in range(size):
                called = calls[rank][bucket] - 0.05
                rows.append((rank, "c10d::allreduce_", called, called + 0.04))
                rows.append((rank, "gloo:all_reduce", called + 0.05, done + dice.uniform(0, 0.3)))
        for rank in range(size):
            rows.append((rank, "backward", backward[rank], done + 1.0))
            clocks[rank] = done + 1.0 + OPTIMIZER * dice.uniform(0.9, 1.1)
            rows.append((rank, "optimizer", done + 1.0, clocks[rank]))
            rows.append((rank, f"ProfilerStep#{step + 2}", begins[rank], clocks[rank]))
    rows.sort(key=lambda row: (row[2], -row[3]))
    looks = "loader" if hiccup[2] == "load" else "slow rank"
    return rows, (fault, ill if fault in ("loader", "slow rank") else None), (looks, hiccup[0])


def _misread(given: Any, planted: Fault, hiccup: Fault, rows: list[Row]) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    if not isinstance(given, tuple) or len(given) != 2 or given[0] not in FAULTS:
        return " Return a pair: one of the four names, and a rank or None."
    (named, rank), (fault, ill) = given, planted
    sums: dict[int, float] = {}
    for each, name, begin, end in rows:
        if name == "gloo:all_reduce":
            sums[each] = sums.get(each, 0.0) + end - begin
    if given == hiccup:
        return f" Rank {rank} was late in one step of {STEPS} only: a mean sees that, a median does not."
    if rank is not None and rank not in sums:
        return f" There is no rank {rank!r}."
    if ill is not None and rank is not None and rank != ill:
        return f" Rank {rank} has longer sums because it waits for rank {ill}."
    if fault in ("none", "bucket") and rank is not None:
        return " No rank is slower than the others in load or in forward."
    if fault == "bucket":
        return " Every call comes after the last gradient of its step."
    if fault == "none":
        return " Three calls of each step come before its last gradient."
    if named == fault:
        return f" Say which rank: {ill}."
    part = "load" if fault == "loader" else "forward"
    return f" Compare the ranks in {part}, step by step."
