"""Graders of the chapter *splitting-layers*: a step over a chain of stages, and the cut that balances them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...rank.trace import describe
from ..grading import asked, listed
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

KINDS = {
    "plain": "layers of several widths",
    "strided": "stages whose output is not contiguous",
    "tokens": "a first stage that takes whole numbers",
    "frozen": "a frozen first stage",
    "twice": "two batches, whose gradients add up",
}
WIDTHS = (4, 6, 5, 3, 7)  # of what goes into each stage and comes out of the last
ROWS = 5


# -- chain -------------------------------------------------------------------------------------------------------


@dataclass
class _Step:
    """What an answer left on one rank: its stage's gradients by name, and what it returned for each batch."""

    gradients: dict[str, Tensor | None]
    returned: list[Any]


@grader
def chain(answer: Callable[[Module, Tensor, Callable[[Tensor], Tensor]], Tensor | None]) -> Verdict:
    """Grade a training step of a model that is cut over the ranks, against the uncut model.

    Args:
        answer: ``chain(stage, x, loss_of)`` runs on every rank, in groups of 2, 3 and 4. ``stage`` is the rank's
            module. ``x`` is the batch on rank 0, and on the others an empty tensor of the shape and dtype that
            arrive. ``loss_of`` takes what the last stage gives. Every parameter that wants a gradient has to have
            it afterwards, added to what it had; the last rank returns the loss. Par is one message for each
            neighbour.

    Exercise of the chapter *splitting-layers*.
    """
    worlds = sizes()
    most = 0
    for kinds in (["plain"], [kind for kind in KINDS if kind != "plain"]):  # an error in one would hide the others
        cases = [Case(size, ((kind,),) * size, KINDS[kind]) for size in worlds for kind in kinds]
        tried = attempts(functools.partial(_step, answer), cases)
        for case, ranks in zip(cases, tried, strict=True):
            kind = case.arguments[0][0]
            if problem := _wrong_step(kind, [attempt.result for attempt in ranks]) or _over_par(kind, ranks):
                return not_yet(f"With {case}: {problem}")
            most = max([most, *(attempt.messages // len(_batches(kind)) for attempt in ranks)])
    return correct(
        f"{len(KINDS)} models on {listed(worlds)} ranks, each gradient that of the uncut model. "
        f"Messages per rank: {most}."
    )


def _stage(kind: str, rank: int) -> Module:
    """The stage of a rank; its weights depend on the rank alone."""
    import torch
    from torch import nn

    class Turned(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.T.contiguous().T

    wide, out = WIDTHS[rank], WIDTHS[rank + 1]
    first = nn.Embedding(10, out) if kind == "tokens" and rank == 0 else nn.Linear(wide, out)
    stage = nn.Sequential(first, nn.Tanh(), *([Turned()] if kind == "strided" else []))
    with torch.no_grad():
        for parameter in stage.parameters():
            values = torch.arange(parameter.numel()) * (rank + 2) % 11 - 5.0
            parameter.copy_(values.reshape(parameter.shape) / 7)
    return stage.requires_grad_(not (kind == "frozen" and rank == 0))


def _batches(kind: str) -> list[Tensor]:
    import torch

    if kind == "tokens":
        return [torch.arange(ROWS) % 4]
    batch = torch.linspace(-1, 1, ROWS * WIDTHS[0]).reshape(ROWS, WIDTHS[0])
    return [batch, batch.flip(0) / 2] if kind == "twice" else [batch]


def _loss_of(y: Tensor) -> Tensor:
    import torch

    return (y - torch.linspace(0, 1, y.numel()).reshape(y.shape)).square().mean()


def _step(answer: Callable, kind: str) -> _Step:
    """Runs on a rank, in the group of a case."""
    import torch
    import torch.distributed as dist

    rank = dist.get_rank()
    stage, returned = _stage(kind, rank), []
    for batch in _batches(kind):
        x = batch if rank == 0 else torch.full((ROWS, WIDTHS[rank]), float("nan"))
        try:
            returned.append(answer(stage, x, _loss_of))
        except Exception as error:
            raise RuntimeError(f"with {KINDS[kind]}, {describe(error)}") from error
    loss = [each.detach() if isinstance(each, torch.Tensor) else each for each in returned]
    return _Step({name: p.grad for name, p in stage.named_parameters()}, loss)


def _alone(kind: str, size: int, number: int | None = None) -> tuple[list[dict[str, Tensor | None]], list[Tensor]]:
    """What one process computes with all stages in a row: gradients by rank, losses; of one batch where it is given."""
    from torch import nn

    stages = [_stage(kind, rank) for rank in range(size)]
    batches, losses = _batches(kind), []
    for batch in batches if number is None else batches[number:][:1]:
        losses.append(_loss_of(nn.Sequential(*stages)(batch)))
        losses[-1].backward()
    found = [{name: p.grad for name, p in stage.named_parameters()} for stage in stages]
    return found, [loss.detach() for loss in losses]


def _from_ones(kind: str, size: int, rank: int) -> dict[str, Tensor | None]:
    """The gradients of a stage whose backward starts from ones."""
    from torch import nn

    stages = [_stage(kind, each) for each in range(size)]
    for batch in _batches(kind):
        y = nn.Sequential(*stages[: rank + 1])(batch)
        if y.requires_grad:
            y.sum().backward()
    return {name: p.grad for name, p in stages[rank].named_parameters()}


def _wrong_step(kind: str, ranks: Sequence[_Step]) -> str:
    """Say what is wrong with losses and gradients, "" where nothing is."""

    size = len(ranks)
    wanted, losses = _alone(kind, size)
    for got, loss in zip(ranks[-1].returned, losses, strict=True):
        if got is None:
            return f"rank {size - 1}: the last rank should return the loss, it returned nothing (None)."
        if told := difference(got, loss):
            return f"rank {size - 1}, the loss: {told}"
    for rank, left in reversed(list(enumerate(ranks))):  # gradients come from the right: so does the first mistake
        for name, right in wanted[rank].items():
            got = left.gradients[name]
            if right is None:
                if got is not None:
                    return f"rank {rank}: {name} is frozen, and now it has a gradient."
                continue
            if got is None:
                return f"rank {rank}: {name}.grad is None: no gradient came back to its stage."
            if told := difference(got, right):
                return f"rank {rank}: {name}.grad: {told}{_named(kind, size, rank, name, got, right)}"
    return ""


def _named(kind: str, size: int, rank: int, name: str, got: Tensor, right: Tensor) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    import torch

    slips = [
        (2 * right, "That is twice the right one: run each backward once."),
        (_from_ones(kind, size, rank)[name], "Backward began from ones: begin from what the next rank sent."),
    ]
    if kind == "twice":
        last = _alone(kind, size, 1)[0][rank][name]
        slips.insert(0, (last, "Only the second batch is in it: gradients add up until somebody clears them."))
    for slip, sentence in slips:
        if slip is not None and torch.allclose(got, slip, rtol=1e-4, atol=1e-6):
            return f" {sentence}"
    return ""


def _over_par(kind: str, ranks: Sequence[Any]) -> str:
    """Say that an answer sent more than one message for each neighbour and batch, or used a collective."""
    for rank, attempt in enumerate(ranks):
        if others := sorted(set(attempt.calls) - {"send", "recv"}):
            return f"right, but the answer calls {others[0]}; sends and receives are enough."
        par = ((rank > 0) + (rank < len(ranks) - 1)) * len(_batches(kind))
        if attempt.messages > par:
            return f"right, but rank {rank} sent {attempt.messages} messages, par is {par}."
    return ""


# -- best_cut ----------------------------------------------------------------------------------------------------

PIECES = (  # what each piece takes, and how many ranks
    ([4, 4, 4, 4, 4, 4], 3),
    ([1, 1, 1, 1, 1, 15], 2),
    ([9, 1, 1, 1, 1, 9, 1, 1], 3),
    ([2, 3, 5, 4, 6, 1, 7, 3], 4),
    ([5, 8, 2, 1], 4),  # three stages would be as fast, and leave a rank without a piece
    ([14, 14, 6, 9, 11, 5, 8, 9, 14, 9, 8, 8, 8, 8, 22, 19, 19, 2], 4),  # forward of the chapter's pieces
    ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], 4),
    ([7, 3], 1),
)


@grader
def best_cut(answer: Callable[[list[float], int], Sequence[int]]) -> Verdict:
    """Grade the choice of boundaries that make the slowest stage as fast as possible.

    Args:
        answer: ``best_cut(seconds, ranks)`` gets the seconds of each piece and returns ``ranks + 1`` boundaries, from
            0 to the number of pieces: rank r has the pieces from ``cut[r]`` to before ``cut[r + 1]``, at least one.
            Eight models; where several cuts are best, any of them will do.

    Exercise of the chapter *splitting-layers*.
    """
    for pieces, ranks in PIECES:
        where = f"pieces of {', '.join(map(str, pieces))} on {ranks} rank{'s' * (ranks > 1)}"
        given, problem = asked(answer, [float(piece) for piece in pieces], ranks)
        problem = problem or _no_cut(given, len(pieces), ranks)
        if problem := problem or _slow([int(each) for each in given], pieces, ranks):
            return not_yet(f"{where}: {problem}")
    return correct(f"{len(PIECES)} of {len(PIECES)}, no slowest stage could be faster.")


def _no_cut(given: Any, pieces: int, ranks: int) -> str:
    """Say why something is no list of boundaries, "" where it is one."""
    shown = f"your answer is {given!r}"
    try:
        cut = [int(boundary) for boundary in given]
        whole = all(boundary == exact for boundary, exact in zip(given, cut, strict=True))
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last for a row of a tensor
        return f"{shown}, a list of boundaries is expected."
    if not whole:
        return f"{shown}, boundaries are whole numbers."
    if len(cut) != ranks + 1:
        return f"{shown}; {ranks + 1} boundaries are expected, from 0 to {pieces}, ends included."
    if cut[0] != 0 or cut[-1] != pieces:
        return f"{shown}; the first boundary is 0 and the last {pieces}, or pieces belong to nobody."
    if empty := [rank for rank in range(ranks) if cut[rank] >= cut[rank + 1]]:
        return f"{shown}; rank {empty[0]} has no piece."
    return ""


def _slow(cut: list[int], pieces: Sequence[int], ranks: int) -> str:
    """Say that a slowest stage could be faster, "" where none could."""
    best = min(_slowest(pieces, each) for each in _cuts(len(pieces), ranks))
    slowest = _slowest(pieces, cut)
    if slowest == best:
        return ""
    told = f"the slowest stage of {cut} takes {slowest}, where {best} is possible."
    equal = [round(rank * len(pieces) / ranks) for rank in range(ranks + 1)]
    if cut in (equal, [rank * len(pieces) // ranks for rank in range(ranks + 1)]):
        return f"{told} Equal numbers of pieces are not equal times."
    if cut == _greedy(pieces, ranks):
        return f"{told} Closing a stage when it reaches the average leaves the rest to the last."
    return told


def _cuts(pieces: int, ranks: int) -> list[list[int]]:
    return [[0, *inner, pieces] for inner in itertools.combinations(range(1, pieces), ranks - 1)]


def _slowest(pieces: Sequence[int], cut: Sequence[int]) -> int:
    return max(sum(pieces[first:last]) for first, last in itertools.pairwise(cut))


def _greedy(pieces: Sequence[int], ranks: int) -> list[int]:
    """The cut that closes a stage as soon as it has reached the average of all."""
    cut, held = [0], 0.0
    for number, piece in enumerate(pieces, start=1):
        held += piece
        needed = ranks - len(cut)  # stages after this one, a piece each at least
        if needed and (held >= sum(pieces) / ranks or len(pieces) - number == needed):
            cut, held = [*cut, number], 0.0
    return [*cut, len(pieces)]
