"""Graders of the chapter *talking-less*: one exchange for several micro-batches, and a hook in half the bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...rank.meter import meter
from ...rank.smaller import Attempt
from ..grading import PREPARING, Raised, listed, safely
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, sizes

if TYPE_CHECKING:
    from torch import Tensor, nn

COUNTS = (1, 2, 5)  # micro-batches of a step
STEPS = 25  # of the training with a hook
MOST_BYTES, MOST_APART = 0.55, 0.01  # of DDP's bytes and loss; the headers of small messages are not halved


# -- accumulated -------------------------------------------------------------------------------------------------


@grader
def accumulated(answer: Callable[[Any, Callable, list[Tensor]], None]) -> Verdict:
    """Grade gradient accumulation: the gradient of one process, with one exchange.

    Args:
        answer: ``accumulated(ddp, loss_of, micro_batches)`` runs on every rank, inside a process group of 2, 3 and 4
            ranks, and leaves in ``.grad`` the gradient of the mean of ``loss_of(ddp, micro_batch)`` over the
            micro-batches of all ranks. Par is one ``all_reduce``.

    Exercise of the chapter *talking-less*.
    """
    tried = sizes()
    cases = [
        Case(size, tuple((rank, count) for rank in range(size)), f"{count} micro-batch{'es' * (count > 1)}")
        for size in tried
        for count in COUNTS
    ]
    # torch imports half of itself for the first DDP, and an answer has no part in that.
    done = attempts(partial(_accumulated, answer), cases, patience=PREPARING)
    for case, ranks in zip(cases, done, strict=True):
        for rank, attempt in enumerate(ranks):
            if problem := _accumulated_problem(attempt.result, case, rank):
                return not_yet(f"With {case}: rank {rank}: {problem}")
    return correct(f"{len(cases)} gradients on {listed(tried)} ranks are those of one process, with one exchange each.")


def _accumulated(answer: Callable, rank: int, count: int) -> tuple[Any, int, Any]:
    """Runs on a rank: what the answer raised, how often the rank called all_reduce, and the gradient that is left."""
    from torch.nn.parallel import DistributedDataParallel

    ddp = DistributedDataParallel(_line())
    with meter() as counted:
        returned = safely(answer, ddp, _loss_of, [_micro_batch(rank, number) for number in range(count)])
    raised = returned.words if isinstance(returned, Raised) else ""
    return raised, counted.calls["all_reduce"], ddp.module.weight.grad


def _line() -> nn.Linear:
    import torch

    module = torch.nn.Linear(3, 1, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[1.0, -2.0, 3.0]]))
    return module


def _micro_batch(rank: int, number: int) -> Tensor:
    import torch

    return ((torch.arange(6) * (rank + 2) + 5 * number + rank) % 7).float().reshape(2, 3)


def _loss_of(model: Any, rows: Tensor) -> Tensor:
    return model(rows).square().mean()


def _gradient(pieces: Sequence[tuple[int, int]]) -> Tensor:
    """Return the gradient of one process: the mean over some micro-batches, told by rank and number."""
    import torch

    module = _line()
    for rank, number in pieces:
        (_loss_of(module, _micro_batch(rank, number)) / len(pieces)).backward()
    return torch.as_tensor(module.weight.grad)


def _accumulated_problem(got: tuple[str, int, Any], case: Case, rank: int) -> str:
    """Say what is wrong with what one rank has, "" where nothing is."""
    import torch

    raised, calls, gradient = got
    count = case.arguments[0][1]
    if raised:
        return f"your function raised {raised}"
    if gradient is None:
        return "no gradient is left in .grad."
    whole = _gradient([(other, number) for other in range(case.size) for number in range(count)])
    if torch.allclose(gradient, whole, rtol=1e-4):
        if calls == 1:
            return ""
        advice = "put forward and backward of all micro-batches but the last inside no_sync()"
        return f"the gradient is right, but there were {calls} calls of all_reduce, par is 1: {advice}."
    if calls == 0:
        return "the ranks exchanged nothing: take the last micro-batch out of no_sync()."
    last = _gradient([(other, count - 1) for other in range(case.size)])
    slips = [
        (
            whole * count,
            f"the gradient is {count} times the right one: divide each loss by {count}.",
        ),
        (whole / count, "the gradient is divided twice by the number of micro-batches."),
        (whole / case.size, "you divided by the number of ranks, which DDP had done already."),
        (whole * count / case.size, "divide by the number of micro-batches; DDP divides by the number of ranks."),
        (last / count, "only the last micro-batch is in the gradient."),
        (last, "only the last micro-batch is in the gradient."),
        (whole * case.size, f"the gradient is {case.size} times the right one: DDP divides by the number of ranks."),
    ]
    for wrong, words in slips:
        if torch.allclose(gradient, wrong, rtol=1e-4):
            return words
    if count > 1 and calls == 1:
        return "you exchanged before the last micro-batch, so the gradients after it were not averaged."
    return f"the gradient is {_rounded(gradient)}, one process has {_rounded(whole)}."


def _rounded(gradient: Tensor) -> list[float]:
    return [round(value, 2) for value in gradient.flatten().tolist()]


# -- half_hook ---------------------------------------------------------------------------------------------------


@grader
def half_hook(answer: Callable[[Any, Any], Any]) -> Verdict:
    """Grade a communication hook: about half of DDP's bytes, and a loss within 1 % of DDP's.

    Args:
        answer: ``half_hook(state, bucket)`` is registered with the state None. It trains a small network on 2, 3 and 4
            ranks, beside DDP without a hook. Bytes are those of the kernel's TCP counters, or those that the rank gave
            to torch where the kernel does not count.

    Exercise of the chapter *talking-less*.
    """
    tried = sizes()
    cases = [Case(size, tuple((rank,) for rank in range(size)), f"{STEPS} steps") for size in tried]
    shares = []
    for case, ranks in zip(cases, attempts(partial(_compared, answer), cases, patience=PREPARING), strict=True):
        if problem := _hook_problem(ranks, case.size):
            return not_yet(f"With {case}: {problem}")
        shares += [attempt.result["bytes"] / attempt.result["plain bytes"] for attempt in ranks]
    return correct(f"on {listed(tried)} ranks {max(shares):.0%} of the bytes, and a loss within 1 % of DDP's.")


def _compared(answer: Callable, rank: int) -> dict[str, Any]:
    """Runs on a rank: train with DDP's own exchange and with the answer's."""
    plain = _trained(None, rank)
    hooked = safely(_trained, answer, rank)
    if isinstance(hooked, Raised):
        return {"raised": hooked.words}
    ours, ddps = hooked["first"], plain["first"]
    scale = (ours @ ddps / ddps.square().sum()).item()
    alike = (ours @ ddps / ours.norm() / ddps.norm()).item() > 0.99  # another length, the same direction
    return {
        "raised": "",
        "bytes": hooked["bytes"],
        "plain bytes": plain["bytes"],
        "loss": hooked["loss"],
        "plain loss": plain["loss"],
        "weights": hooked["weights"],
        "scale": scale if alike else 1.0,
    }


def _trained(hook: Callable | None, rank: int) -> dict[str, Any]:
    import torch
    import torch.nn.functional as F
    from torch.nn.parallel import DistributedDataParallel

    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(96, 64, generator=draw)
    targets = (rows @ torch.randn(64, 10, generator=draw)).argmax(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [torch.nn.Linear(64, 256, bias=False), torch.nn.ReLU(), torch.nn.Linear(256, 10, bias=False)]
    module = torch.nn.Sequential(*layers)
    ddp = DistributedDataParallel(module)
    if hook is not None:
        ddp.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.2)
    mine, first = slice(24 * rank, 24 * rank + 24), torch.empty(0)
    with meter() as counted:
        for step in range(STEPS):
            optimizer.zero_grad()
            F.cross_entropy(ddp(rows[mine]), targets[mine]).backward()
            if step == 0:
                first = torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None]).clone()
            optimizer.step()
    with torch.no_grad():
        loss = F.cross_entropy(module(rows), targets).item()
        weights = torch.cat([p.flatten() for p in module.parameters()]).numpy().tobytes()
    given = sum(counted.payload.values()) if counted.wire is None else counted.wire
    return {"bytes": given, "loss": loss, "first": first, "weights": hashlib.sha256(weights).hexdigest()}


def _hook_problem(ranks: Sequence[Attempt], size: int) -> str:
    """Say what is wrong with a hook, "" where nothing is."""
    results = [attempt.result for attempt in ranks]
    for rank, result in enumerate(results):
        if result["raised"]:
            advice = ". The hook's second parameter must be called bucket." if "'bucket'" in result["raised"] else ""
            return f"rank {rank}: your hook raised {result['raised']}{advice}"
    if len({result["weights"] for result in results}) > 1:
        return "the ranks end with different weights: each has to get the same mean."
    for rank, result in enumerate(results):
        share, apart = result["bytes"] / result["plain bytes"], abs(result["loss"] / result["plain loss"] - 1)
        if abs(result["scale"] - size) < 0.1:
            return f"rank {rank}: the gradient is {size} times that of DDP: with a hook, dividing is your job."
        if abs(result["scale"] * size - 1) < 0.1:
            return f"rank {rank}: the gradient is divided twice by the number of ranks."
        if share > MOST_BYTES:
            return f"rank {rank} sends {share:.0%} of DDP's bytes, at most {MOST_BYTES:.0%} are allowed."
        if not apart < MOST_APART:  # a loss that is not a number is not below it either
            told = f"{result['loss']:.3f}, DDP's is {result['plain loss']:.3f}"
            return f"rank {rank} sends {share:.0%} of the bytes, but the loss is {told}: that is more than 1 % off."
    return ""
