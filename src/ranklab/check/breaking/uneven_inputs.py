"""Graders of the chapter *uneven-inputs*: what a row counts under Join, and an evaluation exact for any lengths."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..grading import asked, listed
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, every_rank, sizes

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

JOBS = [((6, 6), 3), ((8, 6, 5, 2), 2), ((7, 1), 2), ((0, 4, 1), 3), ((9, 9, 4), 4), ((1, 10, 10, 0), 4)]  # rows, batch
# The rows of each batch, by rank: no two ranks alike, and ranks that have nothing.
LOADS: dict[int, list[tuple[tuple[int, ...], ...]]] = {
    2: [((4, 4), (4, 4)), ((4, 4, 2), (4,)), ((), (3, 2))],
    3: [((5, 5, 2), (5,), (4, 4)), ((), (2,), ())],
    4: [((6, 6, 3), (6, 2), (), (2,)), ((2,), (), (7, 7, 7, 7, 2), ())],
}
CLOSE = 1e-4


# -- row_weights -------------------------------------------------------------------------------------------------


@grader
def row_weights(answer: Callable[[list[int], int, bool], list[list[float]]]) -> Verdict:
    """Grade how much every row counts in an epoch under ``Join``, where a row of a full step counts 1.

    Args:
        answer: ``row_weights(lengths, batch, by_left)`` returns one list per rank, with a number for each of its rows.
            Rank r has ``lengths[r]`` rows in batches of ``batch``; the loss is the mean over a batch, and DDP divides
            the sum of the gradients by the number of ranks, or by that of the ranks that still have a batch.

    Exercise of the chapter *uneven-inputs*.
    """
    for lengths, batch in JOBS:
        for by_left in False, True:
            where = f"With files of {listed(lengths)} rows, batch={batch}, by_left={by_left}"
            given, problem = asked(answer, list(lengths), batch, by_left)
            if problem := problem or _wrong_weights(given, lengths, batch, by_left):
                return not_yet(f"{where}: {problem}")
    return correct(f"{2 * len(JOBS)} jobs, and every row counts what DDP gives it under Join.")


def _weights(lengths: Sequence[int], batch: int, divide: str = "") -> list[list[float]]:
    """What each row counts; ``divide`` is how its gradient is divided, "" by the rows of its batch and all ranks."""
    found: list[list[float]] = []
    for length in lengths:
        own: list[float] = []
        for start in range(0, length, batch):
            rows, left = min(batch, length - start), sum(other > start for other in lengths)
            all_rows = sum(min(batch, max(0, other - start)) for other in lengths)
            by = {
                "": rows * len(lengths),
                "left": rows * left,
                "constant": batch * len(lengths),
                "left, full": batch * left,
                "count": all_rows,
            }[divide]
            own += [batch * len(lengths) / by] * rows
        found.append(own)
    return found


def _wrong_weights(given: Any, lengths: Sequence[int], batch: int, by_left: bool) -> str:
    """Say what is wrong with an answer, "" where nothing is."""
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, (list, tuple)) for each in given):
        return f"your answer is {given!r}, a list of lists is expected: one list per rank."
    if [len(each) for each in given] != list(lengths):
        return f"your lists have {listed([len(each) for each in given])} numbers, the files {listed(lengths)} rows."
    wanted = _weights(lengths, batch, "left" if by_left else "")
    if _alike(given, wanted):
        return ""
    slips = {
        "constant": "That gives every row the same: the mean over a short batch divides by fewer rows.",
        "left, full": "The ranks are right, but a short batch counts as a full one: divide by its own rows.",
        "left": "You divide by the ranks that are left; here DDP divides by all ranks, always.",
        "": "You divide by all ranks; here DDP divides by those that still have a batch.",
        "count": "That is one process: Join counts ranks and knows no rows of other ranks.",
    }
    told = next((f" {words}" for slip, words in slips.items() if _alike(given, _weights(lengths, batch, slip))), "")
    rank, row = next(
        (rank, row)
        for rank, own in enumerate(wanted)
        for row, weight in enumerate(own)
        if not _near(given[rank][row], weight)
    )
    return f"row {row} of rank {rank} counts {wanted[rank][row]:.4g}, your answer is {given[rank][row]:.4g}.{told}"


def _near(one: float, other: float) -> bool:
    return abs(one - other) < CLOSE


def _alike(some: Sequence, others: Sequence) -> bool:
    return all(_near(a, b) for own, wanted in zip(some, others, strict=True) for a, b in zip(own, wanted, strict=True))


# -- evaluate ----------------------------------------------------------------------------------------------------


@dataclass
class _Evaluated:
    """What an answer left on one rank: what it returned, and how it found and left the model."""

    returned: Any
    training: bool
    moved: bool
    frozen: bool


@grader
def evaluate(answer: Callable[[Module, list[tuple[Tensor, Tensor]]], tuple[float, float]]) -> Verdict:
    """Grade an evaluation over ranks with any number of batches of any length: exact, and without padding.

    Args:
        answer: ``evaluate(model, batches)`` runs on every rank, inside a process group of 2, 3 and 4 ranks. ``model``
            is the same on all ranks, has dropout and BatchNorm, and is in training mode; ``batches`` is the rank's own
            list of inputs and labels, perhaps empty. It returns the mean cross-entropy and the accuracy over the rows
            of all ranks, and leaves the model as it was. Par is one call.

    Exercise of the chapter *uneven-inputs*.
    """
    tried = sizes()
    cases = [
        Case(size, tuple((load, rank) for rank in range(size)), f"batches of {_told(load)} rows")
        for size in tried
        for load in LOADS[size]
    ]
    hung = "Ranks have different numbers of batches, so a call for each batch does not meet the others'."
    right = f"{len(cases)} test sets on {listed(tried)} ranks, as one process evaluates them."
    return every_rank(functools.partial(_evaluate, answer), cases, _wrong_evaluation, right, hung)


def _told(load: Sequence[Sequence[int]]) -> str:
    return ", ".join("+".join(map(str, own)) or "no" for own in load)


def _model() -> Module:
    """A small model whose answers change with dropout, and with the batch while BatchNorm trains."""
    import torch
    from torch import nn

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
        model(torch.randn(64, 6))  # so that the running statistics are no zeros and ones
    return model


def _batches(load: Sequence[Sequence[int]], rank: int) -> list[tuple[Tensor, Tensor]]:
    """The batches of one rank, of the rows that its load says."""
    import torch

    draw = torch.Generator().manual_seed(10 * rank + sum(map(len, load)))
    return [
        (torch.randn(rows, 6, generator=draw) + rank, torch.randint(3, (rows,), generator=draw)) for rows in load[rank]
    ]


def _evaluate(answer: Callable, load: Sequence[Sequence[int]], rank: int) -> _Evaluated:
    """Runs on a rank: the model and the batches of a case, given to the answer."""
    import torch

    model = _model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    returned = answer(model, _batches(load, rank))
    if isinstance(returned, (list, tuple)):
        returned = [each.item() if isinstance(each, torch.Tensor) else each for each in returned]
    moved = not all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    training = all(module.training for module in model.modules())
    return _Evaluated(returned, training, moved, not all(weight.requires_grad for weight in model.parameters()))


def _scores(load: Sequence[Sequence[int]]) -> list[list[tuple[float, float, int]]]:
    """Loss and accuracy of each batch and its rows, by rank, as one process computes them."""
    import torch
    import torch.nn.functional as F

    model = _model().eval()
    found: list[list[tuple[float, float, int]]] = []
    with torch.no_grad():
        for rank in range(len(load)):
            own = []
            for inputs, labels in _batches(load, rank):
                logits = model(inputs)
                right = (logits.argmax(1) == labels).double().mean().item()
                own.append((F.cross_entropy(logits, labels).item(), right, len(labels)))
            found.append(own)
    return found


def _mean(scores: Sequence[tuple[float, float, int]], weighted: bool = True) -> tuple[float, float]:
    weights = [rows if weighted else 1 for _, _, rows in scores]
    total = max(1, sum(weights))
    loss = sum(weight * score[0] for weight, score in zip(weights, scores, strict=True)) / total
    return loss, sum(weight * score[1] for weight, score in zip(weights, scores, strict=True)) / total


def _wrong_evaluation(left: _Evaluated, case: Case, rank: int) -> str:
    """Say what is wrong with the evaluation of one rank, "" where nothing is."""
    given, load = left.returned, case.arguments[rank][0]
    if not isinstance(given, (list, tuple)) or len(given) != 2 or not all(isinstance(x, (int, float)) for x in given):
        told = "nothing (None)" if given is None else repr(given)
        return f"your answer is {told}, a loss and an accuracy are expected."
    scores = _scores(load)
    every = [score for own in scores for score in own]
    wanted = _mean(every)
    if left.moved:
        return "the model has changed: in training mode BatchNorm learns from the test set. Call model.eval() first."
    if not left.training:
        return "the model is still in evaluation mode, and training goes on without dropout: call model.train()."
    if left.frozen:
        return "weights no longer ask for a gradient, so training learns nothing: torch.no_grad() is enough."
    if _pair(given, wanted):
        return ""
    by_rank = [_mean(own) for own in scores]
    by_batches = [_mean(own, weighted=False) for own in scores]
    rows = sum(score[2] for score in every)
    slips = [
        (_mean(scores[rank]), "Those are the rows of this rank alone."),
        (_mean(every, weighted=False), "That is the mean over the batches: a short one counts as much as a full one."),
        (_average(by_rank), "That is the mean of the ranks' means: a rank with few rows counts too much."),
        (_average(by_batches), "That is a mean over ranks of means over batches: add rows first, and divide last."),
        ((wanted[0] * rows, wanted[1] * rows), "Those are the sums: divide them by the number of all rows."),
    ]
    told = next((f" {words}" for slip, words in slips if _pair(given, slip)), "")
    got, expected = (", ".join(f"{number:.4g}" for number in pair) for pair in (given, wanted))
    return f"loss and accuracy are {got}, one process gets {expected}.{told}"


def _pair(some: Sequence[float], others: Sequence[float]) -> bool:
    return all(_near(a, b) for a, b in zip(some, others, strict=True))


def _average(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(loss for loss, _ in pairs) / len(pairs), sum(right for _, right in pairs) / len(pairs)
