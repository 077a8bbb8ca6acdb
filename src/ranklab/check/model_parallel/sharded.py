"""Graders of the chapter *sharded*: what a rank keeps, and a step of ZeRO-1 on weights with traps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...rank.alive import Alive, bytes_of, peak
from ...rank.meter import Meter, meter
from ..grading import PREPARING, listed, number
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, sizes

if TYPE_CHECKING:
    from torch import Tensor

Shape = tuple[int, ...]
MODELS: list[list[Shape]] = [[(12, 4)], [(5, 3), (5,)], [(1, 7), (9, 2, 2)]]
# Of each weight its shape, and what is special about it; a tied one is the tensor before it once more.
WEIGHTS: list[tuple[Shape, str]] = [
    ((6, 4), ""),
    ((3, 5), ""),
    ((1,), ""),
    ((2, 2), "frozen"),
    ((4,), "unused"),
    ((2, 3), ""),
    ((2, 3), "tied"),
    ((4, 6), ""),
    ((5, 5), ""),
]
TRAINED = [math.prod(shape) for shape, kind in WEIGHTS if not kind]
STEPS, RATE, MOMENTUM = 3, 0.1, 0.9
AGAIN = 4  # further calls, in which the memory is measured
COPIES = 7  # of the largest weight, which a rank may have at once


# -- held_bytes --------------------------------------------------------------------------------------------------


@grader
def held_bytes(answer: Callable[[list[Shape], int, int], int]) -> Verdict:
    """Grade a count of the bytes that a rank keeps after ``fully_shard``, against models that are sharded on the ranks.

    Args:
        answer: ``held_bytes(shapes, rank, ranks)`` returns the bytes of weights, gradients and Adam's two moments in
            float32. It runs in the notebook.

    Exercise of the chapter *sharded*.
    """
    tried = sizes()
    cases = [Case(size, ((shapes,),) * size, f"the shapes {shapes}") for size in tried for shapes in MODELS]
    done = attempts(_kept, cases, patience=PREPARING)
    for case, ranks in zip(cases, done, strict=True):
        shapes = case.arguments[0][0]
        for rank, attempt in enumerate(ranks):
            where = f"With {case}: rank {rank}"
            told = number(answer, where, list(shapes), rank, case.size, what="a number of bytes")
            if told != attempt.result:
                slip = _wrong_bytes(told, attempt.result, shapes, rank, case.size)
                return not_yet(f"{where}: you say {told:g} bytes, it keeps {attempt.result}.{slip}")
    return correct(f"{len(MODELS)} models on {listed(tried)} ranks keep what you say, to the byte.")


def _kept(shapes: list[Shape]) -> int:
    """Runs on a rank: the bytes of its part of a model with these parameters."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = torch.nn.Module()
    for place, shape in enumerate(shapes):
        model.register_parameter(f"of{place}", torch.nn.Parameter(torch.ones(shape)))
    fully_shard(model, mesh=init_device_mesh("cpu", (torch.distributed.get_world_size(),)))
    adam = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    adam.step()
    tensors = [*model.parameters(), *(parameter.grad for parameter in model.parameters())]
    for state in adam.state.values():
        tensors += [state["exp_avg"], state["exp_avg_sq"]]
    return sum(tensor.to_local().nbytes for tensor in tensors)


def _wrong_bytes(told: float, right: int, shapes: list[Shape], rank: int, size: int) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    numbers = sum(map(math.prod, shapes))
    padded = sum(math.prod([-(-rows // size), *columns]) for rows, *columns in shapes)
    even = sum((rows // size + (rank < rows % size)) * math.prod(columns) for rows, *columns in shapes)
    slips = [
        (16 * even, "The rows are not dealt evenly: as torch.chunk does, each part is as large as the first one."),
        (16 * numbers, "That is the whole model, as under DDP."),
        (right / 4, "Those are the weights alone: a gradient and two moments come to each of them."),
        (right / 2, "Weights and gradients are two of four: Adam keeps two moments."),
        (right * 3 / 4, "Adam keeps two moments for each weight."),
        (16 * padded, "That is the first rank's part: the last ranks get fewer rows, or none."),
        (16 * numbers / size, "The cut is made by whole rows, in each parameter by itself."),
    ]
    return next((f" {sentence}" for slip, sentence in slips if abs(told - slip) < 1), "")


# -- zero1_step --------------------------------------------------------------------------------------------------


@dataclass
class _Steps:
    """What an answer left on one rank after three steps, and the bytes that it took."""

    weights: list[Tensor]
    kept: int  # in state
    sent: int  # which had to leave the rank
    gathered: int  # given to calls of all_gather
    left: int  # alive between two calls, and in no weight, gradient or state
    peak: int  # alive at once, state among them, weights and gradients not


@grader
def zero1_step(answer: Callable[[list[Tensor], dict], None]) -> Verdict:
    """Grade a step of ZeRO-1, called three times on weights with traps, against SGD with momentum in one process.

    Args:
        answer: ``zero1_step(weights, state)`` runs on every rank, inside a process group of 2, 3 and 4 ranks, and
            changes the weights in place; ``state`` is a dictionary that it fills. Par is a share of each weight in
            ``state``, rounded up, a reduce-scatter and an all-gather of each weight, and at the peak ``state`` and
            seven copies of the largest weight.

    Exercise of the chapter *sharded*.
    """
    tried = sizes()
    cases = [Case(size, tuple((rank,) for rank in range(size)), f"{len(WEIGHTS)} weights") for size in tried]
    done = attempts(partial(_three_steps, answer), cases, patience=2)
    for case, ranks in zip(cases, done, strict=True):
        for rank, attempt in enumerate(ranks):
            if problem := _wrong_weights(attempt.result.weights, rank, case.size):
                return not_yet(f"With {case}: rank {rank}: {problem}")
    steps = [attempt.result for attempt in done[-1]]
    if problem := _too_much(steps):
        return not_yet(f"The weights are right, but on {tried[-1]} ranks {problem}")
    kept, sent, most = (max(getattr(each, what) for each in steps) for what in ("kept", "sent", "peak"))
    share = _share(tried[-1])
    return correct(
        f"three steps on {listed(tried)} ranks give the weights of one process. On {tried[-1]} ranks state has at "
        f"most {kept} bytes, par is {4 * share}; a rank sent {sent}, par is {STEPS * 8 * share * (tried[-1] - 1)}; "
        f"at its peak it had {most}, par is {_par_of_peak(tried[-1])}."
    )


def _share(size: int) -> int:  # numbers in the shares of one rank, each rounded up
    return sum(-(-numbers // size) for numbers in TRAINED)


def _par_of_peak(size: int) -> int:  # bytes of a rank's state and of copies of the largest weight, padded
    return 4 * (_share(size) + COPIES * size * max(-(-numbers // size) for numbers in TRAINED))


def _too_much(steps: Sequence[_Steps]) -> str:
    """Say what a rank keeps beyond its share, "" where nothing is."""
    most = {what: max(getattr(each, what) for each in steps) for what in ("kept", "left", "peak", "gathered")}
    if most["kept"] > (share := 4 * _share(len(steps))):
        than = ", as on one process" if most["kept"] >= 4 * sum(TRAINED) else f", more than a share's {share}"
        return (
            f"the tensors in state take {most['kept']} bytes of memory{than}. ZeRO-1 keeps a rank's share of each "
            "velocity; and a view keeps the whole memory alive."
        )
    if most["left"]:
        return (
            f"{most['left']} bytes stay alive between two calls that are in no weight, gradient or state: keep the "
            "shares of the velocities in state, and nothing else."
        )
    if most["peak"] <= (par := _par_of_peak(len(steps))):
        return ""
    told = f"a rank has {most['peak']} bytes at its peak, beside weights and gradients; par is {par}."
    if most["gathered"] > 2 * STEPS * share:
        return f"{told} You gather the gradients of all ranks: a reduce-scatter brings only the mean of a share."
    return f"{told} Finish one weight before you copy the next, so that only one is whole."


def _three_steps(answer: Callable, rank: int) -> _Steps:
    """Runs on a rank: three steps, and some more in which the memory is measured."""
    import torch

    weights: list[Tensor] = []
    for shape, kind in WEIGHTS:
        fresh = torch.nn.Parameter(_numbers(len(weights), shape), requires_grad=kind != "frozen")
        weights.append(weights[-1] if kind == "tied" else fresh)
    state: dict = {}
    try:
        with meter() as counted:
            for step in range(STEPS):
                _give(weights, rank, step)
                answer(list(weights), state)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        error.args = (f"{error}{_trap(str(error))}",)
        raise
    after = [weight.detach().clone() for weight in weights]
    kept = bytes_of(state, apart_from=_given(weights))
    curves, left = [], []
    for step in range(AGAIN):
        _give(weights, rank, step)
        with Alive([_given(weights), state]) as alive:
            answer(list(weights), state)
        curves.append([kept + now for now in alive.curve])
        left.append(alive.left([_given(weights), state]))
    gathered = counted.payload["all_gather"] + counted.payload["all_gather_single"]
    return _Steps(after, kept, _sent(counted), gathered, min(left), peak(curves))


def _give(weights: list[Tensor], rank: int, step: int) -> None:
    """Give each trained weight the gradient of this rank and step."""
    for place, (shape, kind) in enumerate(WEIGHTS):
        if not kind:
            weights[place].grad = _gradient(rank, step, place, shape)


def _given(weights: list[Tensor]) -> list[Tensor]:  # and their gradients
    return [tensor for weight in weights for tensor in (weight, weight.grad) if tensor is not None]


def _trap(error: str) -> str:
    """Name the trap that has caused an error, "" for another error."""
    import torch.distributed as dist

    size, kinds = dist.get_world_size(), [kind for _, kind in WEIGHTS]
    if "NoneType" in error:
        places = f"weights[{kinds.index('frozen')}] is frozen and weights[{kinds.index('unused')}] unused"
        return f" ({places}: their gradients are None, and they stay as they are.)"
    if any(word in error for word in ("size", "shape", "split", "index", "divi", "length")):
        place, numbers = next((place, n) for place, (shape, _) in enumerate(WEIGHTS) if (n := math.prod(shape)) % size)
        return f" (weights[{place}] has {numbers} numbers, which {size} ranks do not divide: pad it with zeros.)"
    return ""


def _sent(counted: Meter) -> int:
    """Return the bytes that have to leave a rank for what it called, where nothing is sent twice."""
    import torch.distributed as dist

    size = dist.get_world_size()
    times = {"all_reduce": 2 * (size - 1) / size, "all_gather": size - 1, "all_gather_single": size - 1}
    times |= dict.fromkeys(("reduce_scatter", "reduce_scatter_single", "all_to_all", "all_to_all_single"), 1 - 1 / size)
    return round(sum(times.get(name, 1) * given for name, given in counted.payload.items()))


def _numbers(seed: int, shape: Shape) -> Tensor:
    import torch

    return ((torch.arange(math.prod(shape)) * 7 + 3 * seed) % 11 - 5).float().reshape(shape)


def _gradient(rank: int, step: int, place: int, shape: Shape) -> Tensor:
    return _numbers(5 * rank + 3 * step + place, shape) * (rank + 1)


def _serial(size: int, ranks: Sequence[int], times: float = 1, momentum: float = MOMENTUM) -> list[Tensor]:
    """What one process gets from the mean of these ranks' gradients, ``times`` as large."""
    import torch

    weights: list[Tensor] = []
    for place, (shape, kind) in enumerate(WEIGHTS):
        weight, velocity = _numbers(place, shape), torch.zeros(shape)
        for step in range(0 if kind else STEPS):
            mean = torch.stack([_gradient(rank, step, place, shape) for rank in ranks]).mean(0)
            velocity = momentum * velocity + times * mean
            weight = weight - RATE * velocity
        weights.append(weights[-1] if kind == "tied" else weight)
    return weights


def _wrong_weights(got: list[Tensor], rank: int, size: int) -> str:
    """Say what is wrong with the weights of one rank, "" where nothing is."""
    import torch

    everyone = range(size)
    wanted = _serial(size, everyone)
    slips = [
        (_serial(size, [rank]), "That is a step with this rank's own gradient."),
        (_serial(size, everyone, size), "The gradients are added and not averaged: divide by the number of ranks."),
        (_serial(size, everyone, momentum=0), "The velocity is lost between two calls: keep it in state."),
        ([_numbers(place, shape) for place, (shape, _) in enumerate(WEIGHTS)], "The weight has not moved."),
    ]
    for place, (shape, kind) in enumerate(WEIGHTS):
        if torch.allclose(got[place], wanted[place], rtol=1e-5, atol=1e-5):
            continue
        slip = next((f" {words}" for other, words in slips if torch.allclose(got[place], other[place], atol=1e-5)), "")
        wrong = ~torch.isclose(got[place], wanted[place], rtol=1e-5, atol=1e-5).flatten()
        if kind in ("frozen", "unused"):
            slip = f" It is {kind}: its gradient is None, and it has to stay as it is."
        elif place + 1 < len(WEIGHTS) and WEIGHTS[place + 1][1] == "tied":
            slip = slip or f" weights[{place}] and weights[{place + 1}] are one tensor: it moves once in a step."
        elif not slip and wrong.nonzero().min() >= (divided := len(wrong) - len(wrong) % size):
            slip = f" The first {divided} are right: {size} ranks do not divide {len(wrong)}, so pad with zeros."
        elif not slip and 0 < wrong.sum() < len(wrong):
            slip = f" {int(wrong.sum())} of its {len(wrong)} numbers are wrong: do the other ranks' shares come back?"
        first = int(wrong.nonzero()[0])
        values = (f"{tensor[place].flatten()[first].item():.4g}" for tensor in (got, wanted))
        told = " where one process gets ".join(values)
        return f"weights[{place}] of shape {list(shape)}: element {first} is {told}.{slip}"
    return ""
