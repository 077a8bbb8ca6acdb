"""Graders of the chapter *by-hand*: averaging the gradients of awkward models, and a loss for uneven counts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...layout import name_ranks
from ...rank.meter import meter
from ...rank.trace import describe
from ..grading import listed
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

MODELS = {
    "plain": "a model of two layers",
    "strided": "a gradient that is not contiguous",
    "dtypes": "parameters of float32 and float64",
    "frozen": "a frozen layer",
    "tied": "two layers that share a weight",
    "unused": "a layer that only rank 0 used",
}
COUNTS: dict[int, list[tuple[int, ...]]] = {
    2: [(6, 6), (6, 2), (6, 0)],
    3: [(6, 3, 1), (0, 6, 1)],
    4: [(6, 6, 6, 6), (6, 4, 2, 1), (0, 1, 0, 5)],
}


# -- average_gradients -------------------------------------------------------------------------------------------


@dataclass
class _Averaged:
    """What an answer left on one rank: gradients by name, what it changed beside them, and what it sent."""

    before: dict[str, Tensor | None]
    after: dict[str, Tensor | None]
    weights_changed: bool
    calls: int
    bytes: int


@grader
def average_gradients(answer: Callable[[Module], None]) -> Verdict:
    """Grade the averaging of a model's gradients over the ranks, on models that break the plain loop.

    Args:
        answer: ``average_gradients(model)`` runs on every rank after ``backward()``, inside a process group of 2, 3
            and 4 ranks. It leaves in every trainable parameter's ``grad`` the mean over all ranks, where a rank that
            has no gradient counts as zeros. Frozen parameters keep ``None``. Par is one call for each dtype.

    Exercise of the chapter *by-hand*.
    """
    groups = sizes()
    cases = [Case(size, ((kind,),) * size, words) for size in groups for kind, words in MODELS.items()]
    tried = attempts(functools.partial(_average, answer), cases)
    calls = par = 0
    for case, ranks in zip(cases, tried, strict=True):
        kind, left = case.arguments[0][0], [attempt.result for attempt in ranks]
        if problem := _wrong_gradients(kind, left) or _over_par(kind, left[0]):
            return not_yet(f"With {case}: {problem}")
        calls, par = calls + left[0].calls, par + _par(kind)[0]
    return correct(
        f"{len(MODELS)} models on {listed(groups)} ranks. "
        f"You made {calls} calls in all, par is {par}: one for each dtype."
    )


def _model(kind: str, rank: int = 0) -> Module:
    """A small model without gradients; its weights differ from rank to rank, so that averaging *them* shows."""
    import torch
    from torch.nn import Linear, ModuleDict

    model = ModuleDict({"first": Linear(3, 3), "second": Linear(3, 3)})
    if kind == "dtypes":
        model["second"].double()
    if kind == "frozen":
        model["first"].requires_grad_(False)
    if kind == "tied":
        model["second"].weight = model["first"].weight
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) + rank)
    return model


def _gradient(kind: str, name: str, parameter: Tensor, rank: int) -> Tensor | None:
    """What ``backward()`` would have left: small whole numbers, other ones on every rank and in every place."""
    import torch

    if not parameter.requires_grad or (kind == "unused" and name.startswith("second") and rank != 0):
        return None
    count = parameter.numel()
    values = (torch.arange(count) * (rank + 2) + 12 * (rank + 1) * len(name)) % 97
    values = values.reshape(parameter.shape).to(parameter.dtype)
    return values.T if kind == "strided" and values.dim() == 2 else values


def _average(answer: Callable, kind: str) -> _Averaged:
    """Runs on a rank, in the group of a case: build the model, let the answer average it, and look."""
    import torch
    import torch.distributed as dist

    model = _model(kind, dist.get_rank())
    for name, parameter in model.named_parameters():
        parameter.grad = _gradient(kind, name, parameter, dist.get_rank())
    before = {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
    weights = [parameter.detach().clone() for parameter in model.parameters()]
    with meter() as counted:
        try:
            answer(model)
        except Exception as error:
            raise RuntimeError(f"with {MODELS[kind]}, {describe(error)}") from error
    after = {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
    changed = not all(map(torch.equal, weights, (parameter.detach() for parameter in model.parameters())))
    return _Averaged(before, after, changed, sum(counted.calls.values()), sum(counted.payload.values()))


def _wrong_gradients(kind: str, ranks: Sequence[_Averaged]) -> str:
    """Say what is wrong with the gradients, "" where nothing is."""
    import torch

    for rank, left in enumerate(ranks):
        if left.weights_changed:
            return f"rank {rank}: your answer changed the parameters; it is the gradients that are averaged."
    for name, parameter in _model(kind).named_parameters():
        given = [left.before[name] for left in ranks]
        if not parameter.requires_grad:
            if filled := [rank for rank, left in enumerate(ranks) if left.after[name] is not None]:
                return f"{name_ranks(filled)}: {name} is frozen, and now it has a gradient."
            continue
        zeros = torch.zeros_like(parameter)
        total = torch.stack([zeros if each is None else each for each in given]).sum(0).detach()
        for rank, left in enumerate(ranks):
            got, own = left.after[name], given[rank]
            if got is None:
                return f"rank {rank}: {name}.grad is None, and other ranks have one: its model would go its own way."
            if told := difference(got, total / len(ranks)):
                told = (
                    told + named if (named := _named(got, total, given)) else difference(got, total / len(ranks), own)
                )
                return f"rank {rank}: {name}.grad: {told}"
    return ""


def _named(got: Tensor, total: Tensor, given: Sequence[Tensor | None]) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    import torch

    size, users = len(given), sum(each is not None for each in given)
    slips = [
        (total / max(users, 1), "Divide by all ranks: one that has no gradient counts as zeros."),
        (total, "That is the sum: divide by the number of ranks."),
        (total / size**2, f"It was divided by {size} twice."),
    ]
    for slip, sentence in slips:
        if got.shape == slip.shape and torch.allclose(got.double(), slip.double()):
            return f" {sentence}"
    return ""


def _par(kind: str) -> tuple[int, int]:
    """Return the fewest calls, one for each dtype, and the bytes of all trainable parameters."""
    trainable = [parameter for parameter in _model(kind).parameters() if parameter.requires_grad]
    return len({parameter.dtype for parameter in trainable}), sum(parameter.nbytes for parameter in trainable)


def _over_par(kind: str, left: _Averaged) -> str:
    """Say that a tied weight travelled twice, or a dtype was widened or narrowed; more calls are told, and pass."""
    calls, par = _par(kind)
    if left.calls < calls and left.bytes > par:
        return f"the means are right, but {left.bytes} bytes travelled, par is {par}: joined, float32 became float64."
    if left.bytes < par:
        return f"{left.bytes} bytes travelled, the gradients have {par}: a wide dtype was narrowed on the way."
    if kind == "tied" and left.bytes >= par + _model(kind)["first"].weight.nbytes:
        return f"the means are right, but {left.bytes} bytes travelled, par is {par}: a tied weight is one parameter."
    return ""


# -- weighted_loss -----------------------------------------------------------------------------------------------


@grader
def weighted_loss(answer: Callable[[Tensor, Tensor], Tensor]) -> Verdict:
    """Grade a loss whose gradient, averaged over the ranks, is that of the weighted mean over all ranks' targets.

    Args:
        answer: ``weighted_loss(losses, weights)`` runs on every rank, inside a process group of 2, 3 and 4 ranks. Both
            have 6 elements: the loss of each target of this rank, and what it counts, 0 for padding. The weights of a
            rank may all be 0. It returns the loss; the grader calls ``backward()`` and averages the gradients. Par
            is one all_reduce of one number.

    Exercise of the chapter *by-hand*.
    """
    groups = sizes()
    cases = [
        Case(size, tuple((counts, rank) for rank in range(size)), f"{listed(counts)} targets that count")
        for size in groups
        for counts in COUNTS[size]
    ]
    done = attempts(functools.partial(_backward, answer), cases)
    for case, ranks in zip(cases, done, strict=True):
        averaged = sum(attempt.result[0] for attempt in ranks) / case.size
        if problem := _wrong_loss(case, averaged):
            return not_yet(f"With {case}: {problem}")
    calls, sent = (max(ranks[0].result[place] for ranks in done) for place in (1, 2))
    return correct(
        f"{len(cases)} batches on {listed(groups)} ranks. "
        f"Your loss makes {calls} call{'s' * (calls != 1)} of {sent} bytes, par is 1 of 4."
    )


def _losses(counts: Sequence[int], rank: int, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The losses of a rank's six targets and their weights, of which the first ``counts[rank]`` are not 0."""
    import torch
    from torch.nn.functional import cross_entropy

    draw = torch.Generator().manual_seed(10 * sum(counts) + rank)
    inputs, targets = torch.randn(6, 5, generator=draw), torch.randint(0, 4, (6,), generator=draw)
    weights = torch.tensor([1.0, 0.5, 2.0, 1.0, 0.25, 1.0])
    weights[counts[rank] :] = 0
    return cross_entropy(inputs @ weight.T, targets, reduction="none"), weights


def _matrix() -> Tensor:
    import torch

    return torch.linspace(-1, 1, 20).reshape(4, 5).requires_grad_()


def _backward(answer: Callable, counts: Sequence[int], rank: int) -> tuple[Tensor, int, int]:
    """Runs on a rank, in the group of a case: its gradient, the calls of the answer and their bytes."""
    import torch

    matrix = _matrix()
    losses, weights = _losses(counts, rank, matrix)
    with meter() as counted:
        loss = answer(losses, weights)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
        raise TypeError("weighted_loss should return a tensor of one element that backward() can start from")
    loss.backward()
    if matrix.grad is None:
        raise ValueError("no gradient reaches the losses: compute the loss from them, not from item() or detach()")
    return matrix.grad, sum(counted.calls.values()), sum(counted.payload.values())


def _alone(counts: Sequence[int], loss: Callable[[list[Tensor], list[Tensor]], Tensor]) -> Tensor:
    """The gradient that one process computes of a loss over all ranks' losses and weights."""
    matrix = _matrix()
    losses, weights = zip(*(_losses(counts, rank, matrix) for rank in range(len(counts))), strict=True)
    loss(list(losses), list(weights)).backward()
    return matrix.grad


def _wrong_loss(case: Case, got: Tensor) -> str:
    """Say what is wrong with the averaged gradient, "" where nothing is."""
    import torch

    counts, size = case.arguments[0][0], case.size
    total = _alone(counts, lambda losses, weights: (torch.cat(losses) * torch.cat(weights)).sum())
    weight = sum(float(_losses(counts, rank, _matrix())[1].sum()) for rank in range(size))
    if got.isnan().any():
        empty = [rank for rank, count in enumerate(counts) if not count]
        if not empty:
            return "the gradient is NaN, and no rank's weights are all 0."
        return f"the gradient is NaN: the weights of {name_ranks(empty)} are all 0, and 0 / 0 is NaN."
    if not (told := difference(got, total / weight)):
        return ""
    means = _alone(
        counts,
        lambda losses, weights: (
            sum((each * w).sum() / max(w.sum(), 1e-9) for each, w in zip(losses, weights, strict=True)) / size
        ),
    )
    slips = [
        (total / weight / size, f"That is 1/{size} of it: averaging divides by {size} once more."),
        (total / weight * size, f"That is {size} times the right one: averaging divides by {size} only once."),
        (total / size, "That is a sum: divide by the weight of all ranks."),
        (total / (6 * size), "You divided by the number of targets, not by their weight."),
        (_alone(counts, lambda losses, _: torch.cat(losses).mean()), "The weights have no part in it."),
        (means, "That is the mean of the ranks' means: a target counts more on a rank that has few."),
    ]
    for slip, sentence in slips:
        if torch.allclose(got, slip, rtol=1e-4, atol=1e-6):
            return f"the averaged gradient is wrong. {sentence}"
    return f"the averaged gradient: {told}"
