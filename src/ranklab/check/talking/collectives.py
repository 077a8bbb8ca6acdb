"""Graders of the chapter *collectives*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, awkward, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor

    from ...rank.smaller import Attempt

BLOCKS = ((1, 1), (2, 3), (3, 2), (100, 250))  # rows per rank, rows that it gets for each of its ranks


@grader
def gather_uneven(answer: Callable[[Tensor], Tensor]) -> Verdict:
    """Grade an all_gather for tensors of different lengths, written with send and recv, on 2, 3 and 4 ranks.

    Args:
        answer: ``gather_uneven(tensor)`` is called on every rank with a tensor of one dimension and of its own length,
            sometimes as long as another's, sometimes empty; it returns all of them, joined in the order of ranks.

    Par is N − 1 messages and N − 1 times the bytes of the rank's own tensor. A collective may tell the lengths.

    Exercise of the chapter *collectives*.
    """
    sizes()
    cases = [_uneven(case, number) for number, case in enumerate(awkward())]
    tried = attempts(answer, cases)
    for case, ranks in zip(cases, tried, strict=True):
        parts = [tensor for (tensor,) in case.arguments]
        if told := _first_mistake(ranks, parts, _why_gathered):
            return not_yet(f"With {case}: {told}")
    case, ranks = max(zip(cases, tried, strict=True), key=lambda pair: (pair[0].size, pair[0].arguments[0][0].numel()))
    own = max(tensor.nbytes for (tensor,) in case.arguments)
    if not any(attempt.messages for attempt in ranks):
        return not_yet(f"With {case}: the numbers are right, but no rank sent a message: build it from send and recv.")
    messages, payload = max(each.messages for each in ranks), max(each.payload for each in ranks)
    return correct(
        f"{len(cases)} cases on up to {case.size} ranks. The busiest rank sent {messages} messages and "
        f"{payload} bytes in the largest; par is {case.size - 1} and {(case.size - 1) * own}."
    )


@grader
def transpose(answer: Callable[[Tensor], Tensor]) -> Verdict:
    """Grade the transposition of a matrix of which every rank has some rows, on 2, 3 and 4 ranks.

    Args:
        answer: ``transpose(rows)`` is called on rank r of N with a tensor of shape (k, N · m), rows r · k to
            (r + 1) · k of a matrix of N · k rows; it returns a tensor of shape (m, N · k), the rows r · m to
            (r + 1) · m of the transposed matrix.

    Par is what leaves a rank when each sends every other one only its block: (N − 1) / N of its rows.

    Exercise of the chapter *collectives*.
    """
    groups = sizes()
    cases = list(_matrices(groups))
    tried = attempts(answer, cases)
    for case, ranks in zip(cases, tried, strict=True):
        if told := _first_mistake(ranks, [rows for (rows,) in case.arguments], _why_transposed):
            return not_yet(f"With {case}: {told}")
    case, ranks = cases[-1], tried[-1]
    rows = case.arguments[0][0]
    par = rows.nbytes * (case.size - 1) // case.size
    wires = [attempt.wire for attempt in ranks if attempt.wire is not None]
    score = ""
    if len(wires) == len(ranks):
        score = f" The busiest rank put {max(wires) / par:.1f} times the par of {par} bytes on the wire."
    return correct(f"{len(cases)} matrices on up to {case.size} ranks.{score}")


def _uneven(case: Case, number: int) -> Case:
    """Return the case with tensors of other lengths: falling from rank to rank, rising, or now less and now more."""
    cut = []
    for rank, (tensor,) in enumerate(case.arguments):
        less = (rank ^ 1) if number % 8 == 5 else case.size - 1 - rank if number % 2 else rank
        cut.append((tensor[: max(0, tensor.numel() - less)],))
    lengths = ", ".join(str(tensor.numel()) for (tensor,) in cut)
    kind = str(cut[0][0].dtype).removeprefix("torch.")
    strided = "" if all(tensor.is_contiguous() for (tensor,) in case.arguments) else ", every other of a tensor"
    return Case(case.size, tuple(cut), f"{lengths} elements of {kind}{strided}")


def _matrices(groups: Sequence[int]) -> Iterator[Case]:
    import torch

    for size, (own, other), plain in itertools.product(groups, BLOCKS, (False, True)):
        shape = (size * own, size * other)
        dtype = torch.float32 if plain else torch.int64
        whole = torch.arange(shape[0] * shape[1], dtype=dtype).reshape(shape)
        if not plain:
            whole = whole.T.contiguous().T  # the same numbers, column by column in memory
        told = f"a {shape[0]} × {shape[1]} matrix of {str(dtype).removeprefix('torch.')}"
        yield Case(size, tuple((rows,) for rows in whole.chunk(size)), told + ("" if plain else ", not contiguous"))


def _first_mistake(ranks: Sequence[Attempt], parts: Sequence[Tensor], why: Callable) -> str:
    """Return a sentence about the first rank that is wrong, "" where none is."""
    wrong = {rank: told for rank, attempt in enumerate(ranks) if (told := why(attempt.result, parts, rank))}
    if not wrong:
        return ""
    if 0 not in wrong and all(ranks[rank].result is None for rank in range(1, len(ranks))):
        return "only rank 0 returns it; every rank has to."
    rank = min(wrong)
    return f"rank {rank}: {wrong[rank]}"


def _why_gathered(got: Any, parts: Sequence[Tensor], rank: int) -> str:
    """Say what is wrong with a rank's joined tensor, the usual mistakes by their name; "" where nothing is."""
    import torch

    wanted = torch.cat(list(parts))
    told = difference(got, wanted, parts[rank])
    if not told or not isinstance(got, torch.Tensor) or got.dim() != 1:
        return told
    longest = max(part.numel() for part in parts)
    padded = [torch.nn.functional.pad(part, (0, longest - part.numel())) for part in parts]
    if _same(got, torch.cat([part for other, part in enumerate(parts) if other != rank])):
        return "its own part is missing."
    if _same(got, parts[rank]):
        return "it returns its own tensor alone."
    if _same(got, torch.cat(padded)):
        return "the padding is still in it: cut every part to its length."
    if _same(got, sum(padded)):
        return "the parts are added up; they should stand one after the other."
    for order in itertools.permutations(range(len(parts))):
        if _same(got, torch.cat([parts[other] for other in order])):
            return f"all parts are there, in the order of ranks {', '.join(map(str, order))}."
    return told


def _why_transposed(got: Any, parts: Sequence[Tensor], rank: int) -> str:
    """Say what is wrong with a rank's rows of the transposed matrix; "" where nothing is."""
    import torch

    turned = torch.cat(list(parts)).T
    wanted = turned.chunk(len(parts))[rank]
    told = difference(got, wanted, parts[rank])
    if not told or not isinstance(got, torch.Tensor):
        return told
    if _same(got, turned):
        return f"it returns all {len(turned)} rows of the transposed matrix; its own are {len(wanted)}."
    if _same(got, parts[rank].T):
        return "it transposes its own rows only; the other ranks have the rest of its columns."
    blocks = [part.chunk(len(parts), 1)[rank] for part in parts]
    if any(_same(got, joined) for joined in (torch.cat(blocks), torch.cat(blocks, 1))):
        return "the blocks have arrived; each still has to be transposed."
    for order in itertools.permutations(range(len(parts))):
        if _same(got, torch.cat([blocks[other].T for other in order], 1)):
            return f"all blocks are there, in the order of ranks {', '.join(map(str, order))}."
    return told


def _same(got: Tensor, other: Tensor) -> bool:
    return (got.shape, got.dtype) == (other.shape, other.dtype) and bool((got == other).all())
