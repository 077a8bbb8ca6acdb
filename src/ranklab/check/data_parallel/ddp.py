"""Graders of the chapter *ddp*: the statistics of SyncBatchNorm, and the calls of a training loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from numbers import Number
from typing import TYPE_CHECKING, Any

from ...rank.meter import meter
from ...rank.smaller import Attempt
from ..grading import PREPARING, asked
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor

ROWS = {
    "equally many rows on each rank": (4, 4, 4, 4),
    "different numbers of rows": (2, 5, 1, 3),
    "no rows on rank 1": (3, 0, 4, 0),
}
LOOPS = [(1, 1, False), (3, 1, False), (1, 4, True), (3, 1, True), (2, 4, False), (3, 3, True)]


@grader
def batch_statistics(answer: Callable[[Tensor], Sequence[Tensor]]) -> Verdict:
    """Grade mean and variance over the rows of all ranks, as SyncBatchNorm needs them.

    Args:
        answer: ``batch_statistics(rows)`` runs on every rank, inside a process group of 2, 3 and 4 ranks, with rows of
            three float32 columns: as many on each rank, different numbers, none, and columns far from zero. It returns,
            as float32, the mean and the biased variance of each column over all rows, and makes one collective call.

    Exercise of the chapter *ddp*.
    """
    groups = sizes()
    cases = [
        Case(size, tuple((_rows(rank, count),) for rank, count in enumerate(counts[:size])), words)
        for size in groups
        for words, counts in ROWS.items()
    ]
    cases += [
        Case(size, tuple((_rows(rank, 6) + 1000,) for rank in range(size)), "columns near 1000") for size in groups
    ]
    cases.sort(key=lambda case: case.size)
    tried = attempts(answer, cases)
    for case, ranks in zip(cases, tried, strict=True):
        if problem := _statistics_problem(case, ranks):
            return not_yet(f"With {case}: {problem}")
    return correct(f"{len(cases)} batches have the statistics of one process. You made 1 call, par 1.")


def _rows(rank: int, count: int) -> Tensor:
    import torch

    values = torch.arange(count * 3) * (rank + 3) + 5 * rank
    return (values % 11).float().reshape(count, 3)


def _statistics_problem(case: Case, ranks: Sequence[Attempt]) -> str:
    import torch

    shards = [rows for (rows,) in case.arguments]
    whole = torch.cat(shards).double()
    truth = {"mean": whole.mean(0).float(), "variance": whole.var(0, correction=0).float()}
    for rank, attempt in enumerate(ranks):
        try:
            mean, variance = attempt.result
        except (TypeError, ValueError):
            return f"rank {rank} should return two tensors, the mean and the variance."
        for (name, wanted), got in zip(truth.items(), (mean, variance), strict=True):
            if told := difference(got, wanted):
                return f"rank {rank}: the {name}: {told}{_known(name, got, shards, whole)}"
        calls = sum(attempt.calls.values())
        if calls > 1:
            return f"the statistics are right, but rank {rank} made {calls} calls, par is 1."
    return ""


def _known(name: str, got: Any, shards: Sequence[Tensor], whole: Tensor) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    import torch

    if not isinstance(got, torch.Tensor) or (got.shape, got.dtype) != (whole.shape[1:], torch.float32):
        return ""
    if got.isnan().any():
        return " A mean of no rows is not a number: send sums and counts."
    full = [rows.double() for rows in shards if len(rows)]
    mean = torch.stack([rows.mean(0) for rows in full]).mean(0)
    within = torch.stack([rows.var(0, correction=0) for rows in full]).mean(0)
    if name == "mean" and torch.allclose(got.double(), mean, atol=1e-4):
        return " That is the mean of the ranks' means: a rank with few rows counts too much."
    if name == "variance" and torch.allclose(got.double(), within, atol=1e-4):
        return " That is the mean of the ranks' variances: the ranks' means differ from one another too."
    if name == "variance" and torch.allclose(got.double(), whole.var(0), rtol=1e-4):
        return " That divides by the number of rows minus one."
    if name == "variance" and whole.mean() > 100:
        return " The digits are lost in the difference of two large numbers: add up in 64 bits."
    return ""


@grader
def training_calls(answer: Callable[[int, int, bool], tuple[int, int]]) -> Verdict:
    """Grade a prediction of what DDP calls in a training loop, against what it calls on the reader's ranks.

    Args:
        answer: ``training_calls(steps, micro, buffers)`` returns the numbers of ``all_reduce`` and of ``broadcast``
            calls of a rank, for ``steps`` optimizer steps of ``micro`` backwards each, all but the last of a step
            inside ``no_sync()``; the model fits one bucket, with one buffer or none. It runs in the notebook.

    Exercise of the chapter *ddp*.
    """
    groups = sizes()
    cases = [Case(groups[-1], (loop,) * groups[-1], "") for loop in LOOPS]
    # What is counted is torch's own: an answer has no part in it, and torch imports half of itself for the first DDP.
    tried = attempts(_train, cases, patience=PREPARING)
    for loop, ranks in zip(LOOPS, tried, strict=True):
        counted = ranks[0].result
        steps, micro, buffers = loop
        words = f"steps={steps}, micro={micro}, buffers={buffers}"
        predicted, problem = asked(answer, *loop)
        if problem := problem or _calls_problem(predicted, counted):
            return not_yet(f"With {words}: {problem}")
    return correct(f"in {len(LOOPS)} loops DDP called what you said.")


def _calls_problem(predicted: Any, counted: Sequence[int]) -> str:
    if not isinstance(predicted, (list, tuple)) or len(predicted) != 2:
        return f"your answer is {predicted!r}, two numbers are expected: calls of all_reduce and of broadcast."
    for name, said, was in zip(("all_reduce", "broadcast"), predicted, counted, strict=True):
        if not isinstance(said, Number) or said != was:
            return f"you say {said!r} calls of {name}, DDP made {was}."
    return ""


def _train(steps: int, micro: int, buffers: bool) -> tuple[int, int]:
    """Run the loop on a rank and count; the calls of DDP's construction are not among them."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    module = torch.nn.Linear(2, 1)
    if buffers:
        module.register_buffer("seen", torch.zeros(1))
    ddp = DistributedDataParallel(module)
    with meter() as counted:
        for _ in range(steps):
            for number in range(micro):
                with ddp.no_sync() if number < micro - 1 else nullcontext():
                    ddp(torch.ones(1, 2)).sum().backward()
    return counted.calls["all_reduce"], counted.calls["broadcast"]
