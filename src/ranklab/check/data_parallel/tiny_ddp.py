"""Grader of the chapter *tiny-ddp*: averages that are right although gradients become ready in different orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...rank.smaller import Attempt
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor

# The order in which gradients become ready on each rank, for three gradients of equal shape.
ORDERS = {
    "the same order everywhere": ((2, 1, 0), (2, 1, 0), (2, 1, 0), (2, 1, 0)),
    "another order on rank 1": ((2, 1, 0), (0, 2, 1), (2, 1, 0), (2, 1, 0)),
    "an order of its own on each rank": ((2, 1, 0), (1, 0, 2), (0, 2, 1), (1, 2, 0)),
}


@grader
def average_in_order(answer: Callable[[list[Tensor], Sequence[int]], Sequence[Tensor]]) -> Verdict:
    """Grade averages of gradients that become ready in an order that differs between ranks.

    Args:
        answer: ``average_in_order(gradients, ready)`` runs on every rank, inside a process group of 2, 3 and 4 ranks.
            ``gradients`` are three tensors of equal shape, ``ready`` are their places in the order in which they
            become ready on this rank. It returns the mean over all ranks of each gradient, in the order of
            ``gradients``.

    Exercise of the chapter *tiny-ddp*.
    """
    cases = [
        Case(size, tuple((_gradients(rank), list(orders[rank])) for rank in range(size)), words)
        for size in sizes()
        for words, orders in ORDERS.items()
    ]
    for case, ranks in zip(cases, attempts(answer, cases), strict=True):
        if problem := _problem(case, ranks):
            return not_yet(f"With {case}: {problem}")
    return correct(f"in {len(cases)} backwards every rank had the means, whatever was ready first.")


def _gradients(rank: int) -> list[Tensor]:
    import torch

    return [torch.full((2,), 10.0**place * (rank + 1)) for place in range(3)]


def _problem(case: Case, ranks: Sequence[Attempt]) -> str:
    import torch

    given = [gradients for gradients, _ in case.arguments]
    means = [torch.stack(of_place).mean(0) for of_place in zip(*given, strict=True)]
    for rank, attempt in enumerate(ranks):
        if not isinstance(attempt.result, (list, tuple)) or len(attempt.result) != len(means):
            return f"rank {rank} should return a list of {len(means)} tensors."
        for place, (got, mean) in enumerate(zip(attempt.result, means, strict=True)):
            if told := difference(got, mean):
                return f"rank {rank}: gradient {place}: {told}{_known(got, mean, case)}"
    return ""


def _known(got: Any, mean: Tensor, case: Case) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    import torch

    if not isinstance(got, torch.Tensor) or got.shape != mean.shape:
        return ""
    if torch.allclose(got.double(), mean.double() * case.size):
        return " That is the sum: divide it by the number of ranks."
    if "another" in case.words or "its own" in case.words:
        return " Different gradients were added: the ranks have to call in one order."
    return ""
