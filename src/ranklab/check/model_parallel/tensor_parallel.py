"""Graders of the chapter *tensor-parallel*: a row-parallel layer with a bias, and the rows of a joined matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...rank.trace import describe
from ..grading import entries, listed
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor

KINDS = {
    "plain": "12 columns and a bias",
    "nobias": "12 columns and no bias",
    "texts": "an input of three dimensions",
    "uneven": "ranks with different numbers of columns",
    "frozen": "a frozen matrix",
}
OUT = 5


# -- row_linear --------------------------------------------------------------------------------------------------


@dataclass
class _Learnt:
    """What an answer left on one rank: its output, and the gradients by name."""

    output: Any
    gradients: dict[str, Tensor | None]


@grader
def row_linear(answer: Callable[[Tensor, Tensor, Tensor | None], Tensor]) -> Verdict:
    """Grade a row-parallel linear layer with a bias, forward and backward, against one process.

    Args:
        answer: ``row_linear(x, weight, bias)`` runs on every rank, in groups of 2, 3 and 4. ``x`` and ``weight`` are
            the rank's columns of the input and of the matrix, not equally many on all ranks; ``bias`` is a whole copy
            or None. It returns the whole output on every rank. The grader calls backward from the same loss on all
            ranks, and compares the gradients of all three. Par is one collective, of the output's bytes, forward.

    Exercise of the chapter *tensor-parallel*.
    """
    worlds = sizes()
    for kind in KINDS:  # an error in one would hide the others
        cases = [Case(size, ((kind,),) * size, KINDS[kind]) for size in worlds]
        for case, ranks in zip(cases, attempts(functools.partial(_learn, answer), cases), strict=True):
            found = [attempt.result for attempt in ranks]
            if problem := _wrong(kind, found) or _over_par(ranks):
                return not_yet(f"With {case}: {problem}")
    return correct(
        f"{len(KINDS)} layers on {listed(worlds)} ranks, output and gradients those of one process. "
        f"Collectives per step: 1, par 1."
    )


def _whole(kind: str, size: int) -> tuple[Tensor, Tensor, Tensor | None, list[int]]:
    """Input, matrix and bias of one process, and how many columns each rank has."""
    import torch

    counts = [rank + 1 for rank in range(size)] if kind == "uneven" else [12 // size] * size
    wide = sum(counts)
    shape = (2, 3, wide) if kind == "texts" else (4, wide)
    x = torch.linspace(-1, 1, 4 * wide if len(shape) == 2 else 6 * wide).reshape(shape).sin()
    weight = (torch.arange(OUT * wide) * 5 % 13 - 6.0).reshape(OUT, wide) / 7
    bias = None if kind == "nobias" else torch.arange(OUT) + 1.0
    return x, weight, bias, counts


def _loss(y: Tensor) -> Tensor:
    import torch

    return (y - torch.linspace(0, 1, y.numel()).reshape(y.shape)).square().mean()


def _learn(answer: Callable, kind: str) -> _Learnt:
    """Runs on a rank, in the group of a case."""
    import warnings

    import torch
    import torch.distributed as dist

    rank = dist.get_rank()
    x, weight, bias, counts = _whole(kind, dist.get_world_size())
    mine = {
        "x": x.split(counts, -1)[rank].clone().requires_grad_(),
        "weight": weight.split(counts, 1)[rank].clone().requires_grad_(kind != "frozen"),
        "bias": None if bias is None else bias.clone().requires_grad_(),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            y = answer(mine["x"], mine["weight"], mine["bias"])
            if isinstance(y, torch.Tensor) and y.requires_grad:
                _loss(y).backward()
        except Exception as error:
            raise RuntimeError(f"with {KINDS[kind]}, {describe(error)}") from error
    kept = y.detach().clone() if isinstance(y, torch.Tensor) else y
    return _Learnt(kept, {name: t.grad for name, t in mine.items() if t is not None})


def _alone(kind: str, size: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Output and whole gradients of one process."""
    from torch.nn.functional import linear

    x, weight, bias, _ = _whole(kind, size)
    given = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
    for tensor in given.values():
        tensor.requires_grad_()
    y = linear(x, weight, bias)
    _loss(y).backward()
    return y.detach(), {name: tensor.grad for name, tensor in given.items() if tensor.grad is not None}


def _wrong(kind: str, ranks: Sequence[_Learnt]) -> str:
    """Say what is wrong with outputs and gradients, "" where nothing is."""
    size = len(ranks)
    y, gradients = _alone(kind, size)
    counts = _whole(kind, size)[3]
    for rank, left in enumerate(ranks):
        if told := difference(left.output, y):
            columns = f" The ranks have {listed(counts)} columns." if kind == "uneven" else ""
            return f"rank {rank}, the output: {told}{_slip(kind, size, rank, left.output, y)}{columns}"
    for name in ranks[0].gradients:
        for rank, left in enumerate(ranks):
            if kind == "frozen" and name == "weight":
                if left.gradients[name] is not None:
                    return f"rank {rank}: the matrix is frozen, and your answer gives it a gradient."
                continue
            dim = {"x": -1, "weight": 1}.get(name)
            wanted = gradients[name] if dim is None else gradients[name].split(counts, dim)[rank]
            got = left.gradients[name]
            if got is None:
                return f"rank {rank}: {name}.grad is None: {_why_none(name, left.gradients)}"
            if told := difference(got, wanted):
                return f"rank {rank}, the gradient of {name}: {told}{_factor(name, got, wanted, size)}"
    return ""


def _slip(kind: str, size: int, rank: int, got: Any, y: Tensor) -> str:
    """Recognise the classic mistakes of the output; "" for a new one."""
    import torch
    from torch.nn.functional import linear

    if not isinstance(got, torch.Tensor) or got.shape != y.shape:
        return ""
    x, weight, bias, counts = _whole(kind, size)
    own = linear(x.split(counts, -1)[rank], weight.split(counts, 1)[rank])
    slips = [(own, "That is this rank's term: nobody added.")]
    if bias is not None:
        slips += [
            (y + (size - 1) * bias, f"The bias is in it {size} times."),
            (y - bias, "The bias is missing."),
            (own + bias, "That is this rank's term and the bias: nobody added."),
        ]
    return next((f" {told}" for slip, told in slips if torch.allclose(got, slip, atol=1e-5)), "")


def _why_none(name: str, gradients: dict[str, Tensor | None]) -> str:
    if all(gradient is None for gradient in gradients.values()):
        return "autograd does not see the way from the output to it."
    if name == "bias":
        return "add the bias on every rank, or its copies learn different things."
    return "autograd lost it on the way."


def _factor(name: str, got: Tensor, wanted: Tensor, size: int) -> str:
    """Recognise a gradient that is too large or too small by the number of ranks."""
    import torch

    if torch.allclose(got, size * wanted, rtol=1e-4, atol=1e-6):
        return f" That is {size} times the right one: all ranks have the same loss, so it counts once."
    if torch.allclose(size * got, wanted, rtol=1e-4, atol=1e-6):
        return f" That is 1/{size} of the right one."
    return " That is zero: this rank's copy would not learn." if name == "bias" and not got.any() else ""


def _over_par(ranks: Sequence[Any]) -> str:
    """Say that a right answer talks more than it needs."""
    for rank, attempt in enumerate(ranks):
        if (calls := sum(attempt.calls.values())) > 1:
            return f"right, but rank {rank} calls {calls} collectives in a step, par is 1."
    return ""


# -- qkv_rows ----------------------------------------------------------------------------------------------------

MODELS = (  # heads, heads of k and v, rows of a head, ranks
    (4, 4, 2, 2),
    (4, 4, 1, 4),
    (8, 8, 3, 4),
    (8, 4, 2, 2),
    (8, 2, 2, 4),  # two ranks need the same head
    (8, 1, 4, 4),  # all do
    (12, 6, 1, 3),
    (6, 2, 2, 3),  # a rank between two groups needs two heads
    (4, 2, 2, 1),
)


@grader
def qkv_rows(answer: Callable[[int, int, int, int, int], list[int]]) -> Verdict:
    """Grade the rows of a joined q, k, v matrix that a rank needs for its heads.

    Args:
        answer: ``qkv_rows(heads, kv_heads, width, rank, ranks)`` returns the list of rows: those of the rank's query
            heads, then of the key heads that they use, then of the value heads. The matrix has ``heads * width`` rows
            of q, then ``kv_heads * width`` of k, then as many of v.

    Exercise of the chapter *tensor-parallel*.
    """
    for heads, kv_heads, width, ranks in MODELS:
        for rank in range(ranks):
            where = f"{heads} heads, {kv_heads} of k and v, {width} rows each, rank {rank} of {ranks}"
            given = entries(answer, where, heads, kv_heads, width, rank, ranks, what="a list of rows")
            if problem := _wrong_rows(given, heads, kv_heads, width, rank, ranks):
                return not_yet(f"{where}: {problem}")
    return correct(f"{len(MODELS)} models, every rank has the rows of its heads.")


def _rows(queries: Sequence[int], keys: Sequence[int], heads: int, kv_heads: int, width: int) -> list[int]:
    """The rows of those heads: of q, of k, of v."""
    places = [*queries, *(heads + key for key in keys), *(heads + kv_heads + key for key in keys)]
    return [place * width + row for place in places for row in range(width)]


def _wrong_rows(given: list, heads: int, kv_heads: int, width: int, rank: int, ranks: int) -> str:
    """Say what is wrong with the rows of a rank, "" where nothing is."""
    share, group = heads // ranks, heads // kv_heads
    queries = range(rank * share, (rank + 1) * share)
    keys = sorted({head // group for head in queries})
    wanted = _rows(queries, keys, heads, kv_heads, width)
    if given == wanted:
        return ""
    told = f"your rows are {given}, those of its heads {wanted}."
    whole, dealt = (heads + 2 * kv_heads) * width, range(rank, heads, ranks)
    each = [head // group for head in queries]
    slips = [
        (list(range(rank * whole // ranks, (rank + 1) * whole // ranks)), "Cut q, k and v each, not all in one."),
        (_rows(dealt, sorted({h // group for h in dealt}), heads, kv_heads, width), "Give a rank heads in a row."),
        (_rows(queries, each, heads, kv_heads, width), "Heads that share a key head need it once."),
        (_rows(queries, queries, heads, kv_heads, width), "There are fewer heads of k and v than of q."),
        (_rows(queries, range(kv_heads), heads, kv_heads, width), "It needs the key heads of its own queries only."),
        (
            _rows(queries, [head % kv_heads for head in queries], heads, kv_heads, width),
            "Query head h uses key head h // group.",
        ),
        ([head * width + row for head in queries for row in range(width)], "k and v are missing."),
        (_rows(queries, keys, heads, kv_heads, 1), "A head has several rows."),
    ]
    if sorted(given, key=str) == sorted(wanted, key=str):
        return f"{told} The order is another: q's, then k's, then v's."
    if wider := next((slip for slip in slips if given == slip[0]), None):
        return f"{told} {wider[1]}"
    return told
