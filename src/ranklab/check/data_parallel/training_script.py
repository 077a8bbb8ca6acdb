"""Graders of the chapter *training-script*: a decision that all ranks take together, and the loss of an epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..grading import listed
from ..verdict import Verdict, grader
from ..worlds import Case, a_number, every_rank, sizes

PLENTY, LITTLE, LIMIT = 600.0, 59.5, 60.0  # seconds that a rank's clock gives the job; below the last, it leaves


# -- leave_together ----------------------------------------------------------------------------------------------


@grader
def leave_together(answer: Callable[[bool, float], bool]) -> Verdict:
    """Grade a decision to leave: every rank leaves where any rank has a reason, and no rank leaves alone.

    Args:
        answer: ``leave_together(asked, seconds_left)`` is called on every rank, inside a process group of 2, 3 and 4
            ranks, with whether this rank got SIGTERM and with the seconds that its clock gives the job. It returns
            True on all ranks if any rank was asked or has less than 60 seconds left, and False on all otherwise. Par
            is one call.

    Exercise of the chapter *training-script*.
    """
    tried = sizes()
    cases = [case for size in tried for case in _reasons(size)]
    return every_rank(
        answer, cases, _wrong_decision, f"{len(cases)} decisions on {listed(tried)} ranks, each taken by all."
    )


def _reasons(size: int) -> list[Case]:
    """What the ranks are given: nobody has a reason, one has, all have."""
    last = size - 1
    nobody = [(False, PLENTY)] * size
    return [
        Case(size, tuple(nobody), "no reason to leave"),
        Case(size, ((False, LIMIT), *nobody[1:]), f"{LIMIT:.0f} seconds left on rank 0"),
        Case(size, ((True, PLENTY), *nobody[1:]), "SIGTERM on rank 0"),
        Case(size, (*nobody[1:], (True, PLENTY)), f"SIGTERM on rank {last}"),
        Case(size, (*nobody[1:], (False, LITTLE)), f"{LITTLE} seconds left on rank {last}"),
        Case(size, ((True, LITTLE),) * size, "SIGTERM everywhere and little time"),
    ]


def _own(asked: bool, seconds_left: float) -> bool:
    return asked or seconds_left < LIMIT


def _wrong_decision(got: Any, case: Case, rank: int) -> str:
    """Say what is wrong with the decision of one rank, "" where nothing is."""
    import torch

    own = [_own(*given) for given in case.arguments]
    wanted = any(own)

    if isinstance(got, torch.Tensor) and got.numel() == 1:
        got = got.item()
    if not isinstance(got, (bool, int)) or got not in (0, 1):
        said = "nothing (None)" if got is None else repr(got)[:40]
        return f"it returned {said}; True or False is expected."
    if bool(got) == wanted:
        return ""
    asked = any(asked for asked, _ in case.arguments)
    slips = [
        (not wanted, "Nobody has a reason: at 60 seconds there is still time, and a sum of zeros is zero."),
        (asked and not own[rank], "It looked at itself, or at rank 0, alone: another rank was asked."),
        (not asked and not own[rank], "Another rank's clock has less than 60 seconds."),
        (not asked, "Its own clock has less than 60 seconds, and the decision forgets clocks, or asks one rank only."),
        (all(own), "All ranks have a reason: a sum of ones is the number of ranks, not 1."),
        (True, "It was asked itself: one rank with a reason is enough, and not the mean, the smallest, or rank 0."),
    ]
    told = next(sentence for fits, sentence in slips if fits)
    return f"it {'leaves' if got else 'stays'}, and should {'leave' if wanted else 'stay'}. {told}"


# -- epoch_loss --------------------------------------------------------------------------------------------------

# By rank: the mean losses of its batches, and their numbers of rows. Exact in binary, so slips are told apart.
EPOCHS = [
    (([0.5, 1.0], [8, 8]), ([2.0, 4.0], [8, 8]), ([1.5, 0.25], [8, 8]), ([3.0, 0.5], [8, 8])),
    (([0.5, 1.0], [8, 8]), ([2.0, 4.0, 0.25], [8, 8, 1]), ([1.5], [5]), ([3.0, 0.5, 7.0], [8, 8, 2])),
    (([0.5, 1.0, 6.0], [8, 8, 3]), ([], []), ([2.5], [2]), ([], [])),
]
WORDS = ("equal batches", "shorter last batches", "no batch on rank 1")


@grader
def epoch_loss(answer: Callable[[list[float], list[int]], float]) -> Verdict:
    """Grade the mean loss of an epoch over all rows of all ranks.

    Args:
        answer: ``epoch_loss(losses, rows)`` is called on every rank, inside a process group of 2, 3 and 4 ranks, with
            the mean loss of each of the rank's batches and their numbers of rows; a rank may have no batch. It returns
            on every rank the mean over all rows. Par is one call.

    Exercise of the chapter *training-script*.
    """
    tried = sizes()
    epochs = list(zip(EPOCHS, WORDS, strict=True))
    cases = [Case(size, tuple(epoch[:size]), words) for size in tried for epoch, words in epochs]
    return every_rank(
        answer, cases, _wrong_loss, f"{len(cases)} epochs on {listed(tried)} ranks, every row counted once."
    )


def _total(losses: list[float], rows: list[int]) -> float:
    return sum(loss * count for loss, count in zip(losses, rows, strict=True))


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / max(1, len(numbers))


def _wrong_loss(got: Any, case: Case, rank: int) -> str:
    """Say what is wrong with the loss of one rank, "" where nothing is."""
    got, problem = a_number(got)
    if problem:
        return problem
    given = case.arguments
    rows = sum(sum(counts) for _, counts in given)
    totals = [_total(*each) for each in given]
    truth = sum(totals) / rows
    if abs(got - truth) < 1e-4:
        return ""
    losses, counts = given[rank]
    of_ranks = [total / max(1, sum(counts)) for total, (_, counts) in zip(totals, given, strict=True)]
    every = [loss for each, _ in given for loss in each]
    slips = [
        (_mean(losses), "That is the mean of its own batches: the ranks have to put theirs together."),
        (of_ranks[rank], "That is the loss of its own rows: the ranks have to put theirs together."),
        (_mean([_mean(each) for each, _ in given]), "That is the mean of the ranks' means: empty ranks count."),
        (_mean(of_ranks), "That is the mean of the ranks' losses: few rows count as much as many."),
        (_mean(every), "That is the mean of all batches: a short batch counts as much as a long one."),
        (sum(totals), "That is the sum over all rows: divide it by their number."),
        (totals[rank] / rows, "Only this rank's losses are in it, divided by all rows."),
        (sum(totals) / max(1, sum(counts)), "The sum is over all ranks, and you divide by this rank's rows."),
    ]  # fmt: skip
    told = next((f" {sentence}" for slip, sentence in slips if abs(got - slip) < 1e-4), "")
    if got != got:
        told = " A rank without batches divides by zero: add up first, and divide last."
    return f"the answer is {got:.4g}, over all rows it is {truth:.4g}.{told}"
