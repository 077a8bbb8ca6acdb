"""Graders of the chapter *feeding-ranks*: a sampler rebuilt, and an accuracy without the padding."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..grading import Raised, listed, on_ranks, safely
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, a_number, every_rank, sizes

if TYPE_CHECKING:
    from torch import Tensor

SAMPLED = [(10, 0, 0), (10, 0, 1), (16, 3, 2), (5, 3, 0), (1, 0, 0)]  # rows, seed, epoch; fewer rows than ranks too
PADDED = {2: (7, 8, 1), 3: (7, 10, 1), 4: (10, 6, 1)}  # rows of the test set, by ranks; one row on four of them too


def _count(count: int, noun: str = "row") -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


# -- rows_of -----------------------------------------------------------------------------------------------------


@grader
def rows_of(answer: Callable[[int, int, int, int, int], list[int]]) -> Verdict:
    """Grade a DistributedSampler written as a function: the same rows as torch's, in the same order.

    Args:
        answer: ``rows_of(length, rank, ranks, seed, epoch)`` returns the list of row numbers that
            ``DistributedSampler(range(length), ranks, rank, seed=seed)`` yields after ``set_epoch(epoch)``. It runs on
            every rank, for every world size from 2 up to that of the running world.

    Exercise of the chapter *feeding-ranks*.
    """
    found = on_ranks(_sampled, answer)
    tried = 0
    for size in range(min(2, len(found)), len(found) + 1):
        for case in SAMPLED:
            tried += 1
            for rank in range(size):
                rows, untouched = found[rank][size, case]
                if problem := _wrong_rows(rows, untouched, case, rank, size):
                    length, seed, epoch = case
                    return not_yet(
                        f"With {_count(length)} on {size} ranks, seed {seed}, epoch {epoch}: rank {rank}: {problem}"
                    )
    return correct(f"{tried} orders, and every rank reads the rows that torch's sampler gives it.")


def _sampled(answer: Callable) -> dict[tuple, tuple[Any, bool]]:
    """Runs on a rank: its rows for every case, and whether torch's own generator was left alone."""
    import torch

    rank, world_size, found = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), {}
    for size in range(max(rank + 1, min(2, world_size)), world_size + 1):
        for length, seed, epoch in SAMPLED:
            before = torch.get_rng_state()
            rows = safely(answer, length, rank, size, seed, epoch)
            if isinstance(rows, torch.Tensor):
                rows = rows.tolist()
            untouched = torch.equal(before, torch.get_rng_state())
            torch.set_rng_state(before)
            found[size, (length, seed, epoch)] = rows, untouched
    return found


def _wrong_rows(got: Any, untouched: bool, case: tuple, rank: int, size: int) -> str:
    """Say what is wrong with the rows of one rank, "" where nothing is."""
    if isinstance(got, Raised):
        return f"your function raised {got.words}"
    if not isinstance(got, list):
        return f"your function returned {type(got).__name__}, not a list."
    if got != (wanted := _torchs(case, rank, size)):
        return f"your rows are {got}, the sampler's {wanted}.{_slip(got, case, rank, size)}"
    if not untouched:
        return "the rows are right, but torch's own generator moved: draw from a torch.Generator of your own."
    return ""


def _torchs(case: tuple, rank: int, size: int, **options: Any) -> list[int]:
    from torch.utils.data import DistributedSampler

    length, seed, epoch = case
    sampler = DistributedSampler(range(length), size, rank, **{"seed": seed, **options})
    sampler.set_epoch(epoch)
    return list(sampler)


def _slip(got: list, case: tuple, rank: int, size: int) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    length, seed, epoch = case
    deck = _torchs(case, 0, 1)
    padded = (deck * size)[: -(-length // size) * size]
    share = len(padded) // size
    slips = [
        (_torchs(case, rank, size, shuffle=False), "They are not shuffled."),
        (_torchs((length, seed, 0), rank, size), "epoch has no part in the order."),
        (_torchs((length, 0, epoch), rank, size), "seed has no part in the order."),
        (_torchs((length, seed + rank, epoch), rank, size), "All ranks have to draw one order: leave rank out of it."),
        (padded[rank * share : (rank + 1) * share], "That is a block; the sampler deals rows in turn."),
        # Before "Pad", because on the last ranks padding too little and not at all are the same.
        ((deck + deck[: len(padded) - length])[rank::size], f"Repeat the order until every rank has {_count(share)}."),
        (deck[rank::size], f"Pad: every rank reads {_count(share)}."),
        (deck[: length // size * size][rank::size], "The tail is dropped: pad instead."),
        (
            (deck + [0] * (len(padded) - length))[rank::size],
            "You pad with row 0; the sampler starts again at the head of the shuffled order.",
        ),
        (
            (deck + deck[-1:] * (len(padded) - length))[rank::size],
            "You pad with the last row; the sampler starts again at the head of the order.",
        ),
    ]
    return next((f" {sentence}" for slip, sentence in slips if got == slip), "")


# -- accuracy ----------------------------------------------------------------------------------------------------


@grader
def accuracy(answer: Callable[[Tensor, Tensor, int], float]) -> Verdict:
    """Grade an accuracy over rows that a padding sampler dealt: every row of the test set counts once.

    Args:
        answer: ``accuracy(rows, right, length)`` is called on every rank, inside a process group of 2, 3 and 4 ranks,
            with the row numbers that a DistributedSampler over ``length`` rows gave the rank and a bool tensor that
            says which of them the model got right; it returns on every rank the share of right ones among the
            ``length`` rows. Par is one call.

    Exercise of the chapter *feeding-ranks*.
    """
    tried = sizes()
    cases = [
        Case(size, tuple(_dealt(length, rank, size) for rank in range(size)), _count(length))
        for size in tried
        for length in PADDED[size]
    ]
    return every_rank(
        answer, cases, _wrong_accuracy, f"{len(cases)} test sets on {listed(tried)} ranks, every row counted once."
    )


def _dealt(length: int, rank: int, size: int) -> tuple[Tensor, Tensor, int]:
    """What one rank is given: its rows, shuffled and padded by the sampler, which are right, and how many there are."""
    import torch

    rows = torch.tensor(_torchs((length, 0, 0), rank, size))
    return rows, rows % 3 != 0, length


def _wrong_accuracy(got: Any, case: Case, rank: int) -> str:
    """Say what is wrong with the accuracy of one rank, "" where nothing is."""
    got, problem = a_number(got)
    if problem:
        return problem
    length = case.arguments[0][2]
    truth = sum(row % 3 != 0 for row in range(length))
    if abs(got - truth / length) < 1e-5:
        return ""
    reads = [row for rows, _, _ in case.arguments for row in rows.tolist()]
    hits = sum(row % 3 != 0 for row in reads)
    own = case.arguments[rank][1].double()
    doubled = listed(sorted({row for row in reads if reads.count(row) > 1}))
    slips = [
        (own.mean(), "That is the accuracy of its own rows."),
        (hits / len(reads), f"The sampler repeated row {doubled}, and you count it each time."),
        (hits / length, f"The right ones still hold row {doubled} more than once."),
        (truth / len(reads), f"You divide by {len(reads)} reads, of {_count(length)}."),
        (truth, "That is the count of right rows: divide it by the count of all rows."),
        (own.sum() / length, "Only the rows of this rank are in it: the ranks have to put theirs together."),
    ]
    told = next((f" {sentence}" for slip, sentence in slips if abs(got - float(slip)) < 1e-5), "")
    return f"the answer is {got:.4g}, one process gets {truth} of {length}.{told}"
