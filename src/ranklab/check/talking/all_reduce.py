"""Graders of the chapter *all-reduce*: a sum over ranks, made from messages, with a par for messages and bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import log2
from typing import TYPE_CHECKING

from ...layout import name_ranks
from ...rank.smaller import Attempt
from ...world import current
from ..verdict import NotYet, Verdict, correct, grader
from ..worlds import Case, attempts, awkward, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor

MESSAGES = {"send", "recv"}


@grader
def ring_sum(answer: Callable[[Tensor], Tensor]) -> Verdict:
    """Grade a ring that sums a tensor of any length over any number of ranks.

    Args:
        answer: ``ring_sum(tensor)`` runs on every rank, inside a process group of 2, 3 and 4 ranks, with empty, short,
            odd, integer and strided tensors. It returns the sum, leaves its argument as it was, and sends by itself:
            at most ``2 (N - 1)`` messages per rank, and ``2 (N - 1) S`` bytes on all ranks together. No rank sends more
            than ``2 (N - 1)`` chunks, each the Nth part of the elements, rounded up.

    Exercise of the chapter *all-reduce*.
    """
    sizes()
    cases = list(awkward())
    tried = attempts(answer, cases)
    _look(cases, tried, _wrong, _ring_over_par)
    size, busiest = cases[-1].size, max(ranks[0].messages for ranks in tried)
    sent = sum(attempt.payload for attempt in tried[_longest(cases)])
    bytes_ = _bytes(cases[_longest(cases)])
    return correct(
        f"{len(cases)} sums on 2 to {size} ranks. With {size} ranks you sent {busiest} messages per rank, par "
        f"{2 * (size - 1)}, and for {bytes_} bytes {sent} in all, par {2 * (size - 1) * bytes_}."
    )


@grader
def few_messages(answer: Callable[[Tensor], Tensor]) -> Verdict:
    """Grade a sum that needs few messages, on a power of two of ranks.

    Args:
        answer: ``few_messages(tensor)`` runs on every rank, inside a process group of 2 and 4 ranks. It returns the
            sum, the same to the last bit on all ranks, leaves its argument as it was, and sends by itself at most
            ``log2(N)`` messages and ``log2(N) S`` bytes per rank.

    Exercise of the chapter *all-reduce*.
    """
    sizes()
    cases = [*awkward(sizes=(2,)), *_rough(2), *awkward(sizes=(4,)), *_rough(4)]
    tried = attempts(answer, cases)
    _look(cases, tried, _wrong, _disagree, _few_over_par)
    size = cases[-1].size
    busiest = max(attempt.messages for attempt in tried[-1])
    return correct(
        f"{len(cases)} sums, the same on all ranks to the last bit. With {size} ranks you sent {busiest} "
        f"message{'s' * (busiest != 1)} per rank, par {int(log2(size))}."
    )


def _look(cases: Sequence[Case], tried: Sequence, *looks: Callable) -> None:
    """Raise the first problem: one look at all cases after the other, the largest tensor of a size first."""
    order = sorted(range(len(cases)), key=lambda index: (cases[index].size, -_bytes(cases[index])))
    for look in looks:
        for index in order:
            if problem := look(cases[index], tried[index]):
                raise NotYet(f"With {cases[index]}: {problem}")


def _rough(size: int) -> list[Case]:
    """A case whose sum depends on the order of additions in its last bits; none where there are too few ranks."""
    import torch

    if size > current().size:
        return []
    given = tuple(
        (torch.rand(100, dtype=torch.float32, generator=torch.Generator().manual_seed(rank)),) for rank in range(size)
    )
    return [Case(size, given, "100 elements of float32")]


def _wrong(case: Case, ranks: Sequence[Attempt]) -> str:
    """Say what is wrong with the values, "" where nothing is; a mistake that has a name is called by it."""
    import torch

    given = [tensor for tensor, *_ in case.arguments]
    wanted = torch.stack(given).sum(0)
    for rank, attempt in enumerate(ranks):
        if told := difference(attempt.result, wanted, given[rank]):
            named = _named([attempt.result for attempt in ranks], wanted, given)
            named = named or ("" if "unchanged" in told else _part(attempt.result, wanted, given))
            return f"rank {rank}: {told}{named}"
        if not torch.equal(attempt.given, given[rank]):
            return f"rank {rank}: the sum is right, but your answer changed the tensor that it was given."
        if strangers := sorted(set(attempt.calls) - MESSAGES):
            return f"rank {rank}: the sum is right, but your answer calls {strangers[0]}; send and recv are enough."
    return ""


def _named(results: Sequence, wanted: Tensor, given: Sequence[Tensor]) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    import torch

    size, length = len(given), wanted.numel()
    if not all(isinstance(result, torch.Tensor) and _like(result, wanted) for result in results):
        return ""
    if all(torch.allclose(result.double() * size, wanted.double(), atol=size) for result in results) and length:
        return f" That is the mean: {size} times as much is the sum."
    right = torch.stack([torch.isclose(result.double(), wanted.double(), rtol=1e-5, atol=1e-6) for result in results])
    whole = length // size * size
    if 0 < whole < length and right[:, :whole].all() and not right[:, whole:].any(0).all():
        return (
            f" Only the last {length - whole} of {length} are wrong: the chunks lose what remains of {length} / {size}."
        )
    if right.any(0).all():
        return (
            " Every element is right on some rank: the sums are made, but the second round does not bring them to all."
        )
    return ""


def _part(result: Tensor, wanted: Tensor, given: Sequence[Tensor]) -> str:
    """Say whose numbers the first wrong element adds up, where only some are in it."""
    import torch

    if not isinstance(result, torch.Tensor) or not _like(result, wanted):
        return ""
    place = int((~torch.isclose(result.double(), wanted.double(), rtol=1e-5, atol=1e-6)).nonzero()[0])
    for count in range(1, len(given)):
        for some in combinations(range(len(given)), count):
            if sum(given[rank][place].item() for rank in some) == result[place].item():
                return f" That is only what {name_ranks(list(some))} gave: a chunk was copied before it was complete."
    return ""


def _like(result: Tensor, wanted: Tensor) -> bool:
    return (result.shape, result.dtype) == (wanted.shape, wanted.dtype)


def _ring_over_par(case: Case, ranks: Sequence[Attempt]) -> str:
    most = 2 * (case.size - 1)
    if chatty := [rank for rank, attempt in enumerate(ranks) if attempt.messages > most]:
        return f"the sum is right, but rank {chatty[0]} sent {ranks[chatty[0]].messages} messages, par is {most}."
    sent, par = sum(attempt.payload for attempt in ranks), most * _bytes(case)
    if sent > par:
        return f"the sum is right, but the ranks sent {sent} bytes in all, par is {par}."
    busiest = max(range(case.size), key=lambda rank: ranks[rank].payload)
    chunk = -(-case.arguments[0][0].numel() // case.size) * case.arguments[0][0].element_size()
    if ranks[busiest].payload > most * chunk:
        return (
            f"the sum is right, but rank {busiest} sent {ranks[busiest].payload} bytes, "
            f"par is {most * chunk}: {most} chunks of at most {chunk}."
        )
    return ""


def _few_over_par(case: Case, ranks: Sequence[Attempt]) -> str:
    most = int(log2(case.size))
    for rank, attempt in enumerate(ranks):
        if attempt.messages > most:
            return f"the sum is right, but rank {rank} sent {attempt.messages} messages, par is {most}."
        if attempt.payload > most * _bytes(case):
            return f"the sum is right, but rank {rank} sent {attempt.payload} bytes, par is {most * _bytes(case)}."
    return ""


def _disagree(case: Case, ranks: Sequence[Attempt]) -> str:
    import torch

    others = [rank for rank, attempt in enumerate(ranks) if not torch.equal(attempt.result, ranks[0].result)]
    return f"{name_ranks(others)} and rank 0 have the same sum but not the same bits." if others else ""


def _bytes(case: Case) -> int:
    return case.arguments[0][0].nbytes


def _longest(cases: Sequence[Case]) -> int:
    """Return the index of the case with the most bytes on the most ranks."""
    return max(range(len(cases)), key=lambda index: (cases[index].size, _bytes(cases[index])))
