"""Graders of the chapter *mixed-precision*: clipping behind a scaler, a scaler by hand, bfloat16 added in float32."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...layout import name_ranks
from ...rank.meter import meter
from ..grading import listed
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import LENGTHS, Case, attempts, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor

SCALE = 1024.0
GRADIENTS = {
    "finite gradients": {},
    "an infinity on the last rank": {-1: "inf"},
    "a NaN on rank 0": {0: "nan"},
    "an infinity on rank 0 and its negative on the last rank": {0: "inf", -1: "-inf"},
}
RATE = 0.5
SUMMED = "You summed, although each rank owns different parameters."
# Of each byte given to these, a rank of N sends (N - 1) / N in a ring, all_reduce twice that, and a gather all N - 1.
IN_PIECES = ("all_to_all", "all_to_all_single", "reduce_scatter", "reduce_scatter_single", "scatter", "all_reduce")
GATHERED = ("all_gather", "all_gather_single")


@grader
def scaled_step(answer: Callable[[list[Tensor], float, float, bool], float]) -> Verdict:
    """Grade one step of a loss scaler that is written by hand.

    Args:
        answer: ``scaled_step(parameters, rate, scale, sharded)`` runs on every rank, inside a process group of 2, 3
            and 4 ranks. Each parameter's ``grad`` is this rank's own, times ``scale``. It subtracts ``rate`` times the
            true gradient, which is the mean over the ranks unless the ranks own different parameters (``sharded``;
            then it shares less than a byte for each gradient), and returns the scale; where a rank has a gradient
            that is not finite, it changes no parameter on any rank and returns half of the scale. Par is one call a
            step.

    Exercise of the chapter *mixed-precision*.
    """
    groups = sizes()
    cases = [
        Case(size, ((kind, sharded),) * size, f"{kind}, {'different' if sharded else 'the same'} parameters")
        for size in groups
        for sharded in (False, True)
        for kind in GRADIENTS
    ]
    hung = "A rank that finds an infinity has to make the same calls as the others."
    tried = attempts(functools.partial(_scaled, answer), cases, hung=hung)
    for case, ranks in zip(cases, tried, strict=True):
        kind, sharded = case.arguments[0]
        for rank, attempt in enumerate(ranks):
            if problem := _wrong_scaling(attempt.result, kind, sharded, rank, case.size):
                return not_yet(f"With {case}: rank {rank}: {problem}")
    calls = max(sum(attempt.calls.values()) for ranks in tried for attempt in ranks)
    return correct(
        f"{len(cases)} steps on {listed(groups)} ranks, and all ranks skip the same ones. "
        f"You made {calls} call{'s' * (calls != 1)} a step, par is 1."
    )


def _given(kind: str, sharded: bool, rank: int, size: int) -> tuple[list[Tensor], list[Tensor]]:
    """The parameters of a rank and its true gradients, with what is not finite among them."""
    import torch

    own = rank if sharded else 0
    parameters = [torch.full((2000, 3), 1.0 + own), torch.arange(4.0) - own]
    gradients = [torch.full((2000, 3), 0.25 * (rank + 1)), torch.arange(4.0) * (rank + 2)]
    for place, value in GRADIENTS[kind].items():
        if rank == place % size:
            gradients[1][2] = float(value)
    return parameters, gradients


def _scaled(answer: Callable, kind: str, sharded: bool) -> tuple[list[Tensor], Any, int]:
    """Runs on a rank, in the group of a case: the parameters after the step, the scale returned, the bytes shared."""
    import torch
    import torch.distributed as dist

    parameters, gradients = _given(kind, sharded, dist.get_rank(), dist.get_world_size())
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.requires_grad_()
        parameter.grad = gradient * SCALE
    with meter() as counted:
        scale = answer(list(parameters), RATE, SCALE, sharded)
    scale = scale.item() if isinstance(scale, torch.Tensor) else scale
    return [p.detach().clone() for p in parameters], scale, sum(counted.payload.values())


def _wrong_scaling(left: tuple[list[Tensor], Any, int], kind: str, sharded: bool, rank: int, size: int) -> str:
    """Say what is wrong with the step of one rank, "" where nothing is."""
    import torch

    after, scale, shared = left
    before, own = _given(kind, sharded, rank, size)
    bad = sorted(place % size for place in GRADIENTS[kind])
    every = [_given(kind, sharded, other, size)[1] for other in range(size)]
    total = [sum(of_place, torch.zeros(())) for of_place in zip(*every, strict=True)]
    mean = [each / size for each in total]
    if not isinstance(scale, (int, float)) or isinstance(scale, bool):
        return f"your function returned {scale!r}, it should return the scale."
    if bad:
        if not all(map(torch.equal, after, before)):
            return f"the gradients of {name_ranks(bad)} are not finite, but this rank's parameters changed anyway."
        if scale != SCALE / 2:
            return f"the scale is {scale:g}, expected {SCALE / 2:g}: the gradients of {name_ranks(bad)} are not finite."
        return _shared_too_much(shared, own) if sharded else ""

    def moves(gradient: list[Tensor]) -> bool:
        stepped = [p - RATE * g for p, g in zip(before, gradient, strict=True)]
        return all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(after, stepped, strict=True))

    if moves(own if sharded else mean):
        if scale != SCALE:
            return f"all gradients are finite, and the scale changed from {SCALE:g} to {scale:g}."
        return _shared_too_much(shared, own) if sharded else ""
    slips = [
        ([0 * g for g in own], "They did not change."),
        ([SCALE * g for g in (own if sharded else mean)], "You did not divide the gradients by the scale."),
        (total, SUMMED if sharded else "You did not divide the sum by the number of ranks."),
        (mean, "You averaged, although each rank owns different parameters."),
        (own, "That is a step with this rank's own gradient: average over the ranks."),
    ]
    told = next((f" {words}" for slip, words in slips if moves(slip)), "")
    return f"the parameters are wrong after a step with finite gradients.{told}"


def _shared_too_much(shared: int, own: list[Tensor]) -> str:
    """Shards of one size can be summed, and the sum even shows an infinity; those of other ranks have other sizes."""
    elements = sum(each.numel() for each in own)
    if shared < elements:  # even one byte for each of them needs shards of one size
        return ""
    return (
        f"the step is right here, but this rank shares {shared} bytes for its {elements} gradients. The parameters of "
        "other ranks can have other sizes: share only whether all gradients are finite."
    )


@grader
def wide_sum(answer: Callable[[Tensor], Tensor]) -> Verdict:
    """Grade a sum of bfloat16 tensors that is added in float32 and rounded once.

    Args:
        answer: ``wide_sum(share)`` runs on every rank, inside a process group of 2, 3 and 4 ranks. ``share`` is a
            bfloat16 tensor of one dimension, which may be empty; it returns on every rank the sum in bfloat16. Par is
            the bytes of an ``all_reduce`` of bfloat16 in a ring.

    Exercise of the chapter *mixed-precision*.
    """
    groups = sizes()
    cases = [
        Case(size, tuple((_share(length, rank),) for rank in range(size)), f"{length} elements")
        for size in groups
        for length in LENGTHS
    ]
    tried = attempts(functools.partial(_summed, answer), cases)
    most = par = 0
    for case, ranks in zip(cases, tried, strict=True):
        shares = [share for (share,) in case.arguments]
        wanted = sum(share.float() for share in shares).bfloat16()
        for rank, attempt in enumerate(ranks):
            got, payload = attempt.result
            if told := difference(got, wanted, shares[rank]):
                return not_yet(f"With {case}: rank {rank}: {told}{_rounded(got, wanted)}")
            if len(wanted) < max(LENGTHS):
                continue
            # Twice N - 1 pieces of two bytes an element, padded.
            sent, least = _sent(payload, case.size), 4 * (case.size - 1) * -(-len(wanted) // case.size)
            if sent > 1.05 * least:
                return not_yet(
                    f"With {case}: the sums are right, but a rank sends {sent:.0f} bytes, par is {least:.0f}: send "
                    "bfloat16, and each element only to the rank that adds it."
                )
            most, par = round(sent), round(least)
    return correct(
        f"{len(cases)} sums on {listed(groups)} ranks, each rounded once. "
        f"With {groups[-1]} ranks and {max(LENGTHS)} elements each rank sends {most} bytes in a ring, par is {par}."
    )


def _share(length: int, rank: int) -> Tensor:
    """Whole numbers, large and small ones by turns, so that sums in bfloat16 lose the small ones."""
    import torch

    place = torch.arange(length)
    return (torch.where((place + rank) % 3 == 0, 256, 0) + (place * (rank + 3)) % 7 + 1).bfloat16()


def _summed(answer: Callable, share: Tensor) -> tuple[Any, dict[str, int]]:
    """Runs on a rank, in the group of a case: the sum, and the bytes that were given to each operation."""
    with meter() as counted:
        got = answer(share.clone())
    return got, dict(counted.payload)


def _sent(payload: dict[str, int], size: int) -> float:
    """Bytes that a rank sends if each operation goes round a ring."""
    piece = (size - 1) / size
    factors = dict.fromkeys(IN_PIECES, piece) | dict.fromkeys(GATHERED, size - 1) | {"all_reduce": 2 * piece}
    return sum(given * factors.get(name, 1) for name, given in payload.items())


def _rounded(got: Any, wanted: Tensor) -> str:
    import torch

    if isinstance(got, torch.Tensor) and got.dtype == wanted.dtype and got.shape == wanted.shape:
        near = torch.allclose(got.double(), wanted.double(), rtol=0.02)
        return " It was rounded at each addition: add in float32, and round once." if near else ""
    return ""
