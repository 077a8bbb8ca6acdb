"""Grader of the chapter *mixed-precision*: a step that clips. Its other graders stand in ``mixed_precision``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..grading import PREPARING, listed, on_ranks
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, sizes
from .mixed_precision import SCALE

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from torch.optim import Optimizer

# The mean gradient of each step and the limit of its norm; the second overflows on the last rank.
STEPS = [((30.0, 40.0), 1.0), (None, 1.0), ((0.3, 0.4), 1.0), ((30.0, 40.0), 0.25)]


@grader
def clipped_step(answer: Callable[[Module, Optimizer, Any, float], None]) -> Verdict:
    """Grade a step that clips the gradients of a scaled loss.

    Args:
        answer: ``clipped_step(model, optimizer, scaler, limit)`` runs on every rank, inside a process group of 2, 3
            and 4 ranks, after ``scaler.scale(loss).backward()`` on a DDP model. It clips the true gradient to the norm
            ``limit``, makes the step and updates the scaler.

    Exercise of the chapter *mixed-precision*.
    """
    groups = sizes()
    on_ranks(_prepare, patience=PREPARING)
    cases = [Case(size, ((),) * size, "four steps") for size in groups]
    for case, ranks in zip(cases, attempts(functools.partial(_clipped, answer), cases), strict=True):
        for rank, attempt in enumerate(ranks):
            if problem := _wrong_steps(attempt.result, case.size):
                return not_yet(f"With {case.size} ranks: rank {rank}: {problem}")
    return correct(
        f"on {listed(groups)} ranks the weights are those of float32, and all ranks skip the step that overflows."
    )


def _prepare() -> None:
    """Runs on a rank: what torch imports at the first step of an optimizer takes longer than an answer may."""
    import torch
    from torch.nn.parallel import DistributedDataParallel  # noqa: F401

    torch.optim.SGD([torch.ones(1, requires_grad=True)]).step()


def _clipped(answer: Callable) -> list[tuple[list[float], float]]:
    """Runs on a rank, in the group of a case: the weights and the scale after each step."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(_two_weights())
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE)
    rank, size, left = dist.get_rank(), dist.get_world_size(), []
    for gradient, limit in STEPS:
        mean = torch.tensor([gradient or (3e38 if rank == size - 1 else 1.0,) * 2])
        weighed = mean * 2 * (rank + 1) / (size + 1) if gradient else mean  # its mean over the ranks is `mean`
        optimizer.zero_grad()
        scaler.scale(model(weighed).sum()).backward()
        answer(model, optimizer, scaler, limit)
        weights = torch.cat([weight.detach() for weight in model.parameters()])
        left.append((weights.tolist(), scaler.get_scale()))
    return left


def _two_weights() -> Module:
    """A model of two parameters that are 0: the norm of a gradient is that of both together."""
    import torch

    class Pair(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (torch.nn.Parameter(torch.zeros(1)) for _ in range(2))

        def forward(self, inputs: Tensor) -> Tensor:
            return inputs @ torch.cat([self.first, self.second])

    return Pair()


def _wrong_steps(left: Sequence[tuple[list[float], float]], size: int) -> str:
    """Say what is wrong with the weights of one rank, "" where nothing is."""
    import torch

    before, scale = torch.zeros(2), SCALE
    for number, ((gradient, limit), (weights, after)) in enumerate(zip(STEPS, left, strict=True), 1):
        got = torch.tensor(weights)
        moved = before - got
        if gradient is None:
            if not torch.equal(got, before):
                return (
                    f"step {number}: the gradient of rank {size - 1} overflowed, and the weights changed all the same. "
                    "scaler.step skips such a step; optimizer.step does not."
                )
            scale /= 2
        else:
            true = torch.tensor(gradient)
            wanted = true * min(1.0, limit / true.norm().item())
            if problem := _wrong_move(moved, wanted, true, scale):
                return f"step {number}, limit {limit:g}: {problem}"
        if after != scale:
            return f"step {number}: the scale is {after:g}, expected {scale:g}: call scaler.update() after the step."
        before = got
    return ""


def _wrong_move(moved: Tensor, wanted: Tensor, true: Tensor, scale: float) -> str:
    import torch

    if torch.allclose(moved, wanted, rtol=1e-4):
        return ""
    slips = [
        (torch.zeros(2), "they did not move at all: make the step with scaler.step(optimizer)."),
        (true, "the gradient was not clipped before the step."),
        (true * scale, "the step was made with gradients that are still multiplied by the scale."),
        (wanted / scale, "you clipped gradients that were still multiplied by the scale: unscale them first."),
        (wanted * scale, "you clipped to the limit times the scale, and stepped without dividing by the scale."),
    ]
    told = next((words for slip, words in slips if torch.allclose(moved, slip, rtol=1e-3, atol=1e-7)), "")
    return f"the weights move by a norm of {moved.norm():.3g}, expected {wanted.norm():.3g}" + (
        f": {told}" if told else "."
    )
