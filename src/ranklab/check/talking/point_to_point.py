"""Graders of the chapter *point-to-point*: a shift around a ring, tensors of unknown length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..grading import listed
from ..verdict import NotYet, Verdict, correct, grader
from ..worlds import Case, attempts, awkward, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor

    from ...rank.smaller import Attempt

LENGTHS = ((3, 0, 5, 2), (1000, 1, 7, 12), (6, 6, 6, 6))
LENGTH_BYTES = 8  # one int64


@dataclass(frozen=True)
class Aim:
    """What an answer should come to in one case, by rank.

    Attributes:
        wanted: what each rank should return.
        messages: how many messages are enough for it.
        payload: how many bytes in all.
    """

    wanted: Sequence[Tensor]
    messages: Sequence[int]
    payload: Sequence[int]


@grader
def shift(answer: Callable[[Tensor, int], Tensor]) -> Verdict:
    """Grade a shift around the ring of ranks, in one message per rank.

    Args:
        answer: ``shift(tensor, by)`` runs on every rank, in groups of 2, 3 and 4, and returns the tensor of rank
            ``(rank - by) % world_size``; the rank's own stays as it was. ``by`` is any whole number, the tensors of
            all ranks have one shape and dtype. Par is one message per rank, none where a rank has its own back.

    Exercise of the chapter *point-to-point*.
    """

    tried = sizes()

    def aim(case: Case, given: Sequence[Tensor]) -> Aim:
        by = case.arguments[0][1]
        away = int(by % case.size != 0)
        wanted = [given[(rank - by) % case.size] for rank in range(case.size)]
        return Aim(wanted, [away] * case.size, [away * tensor.nbytes for tensor in given])

    ranks = _last(answer, list(_shifts()), aim)
    most = max(attempt.messages for attempt in ranks)
    return correct(
        f"with {listed(tried)} ranks every tensor arrived where it should. Messages per rank: yours {most}, par 1."
    )


def _shifts() -> Iterator[Case]:
    for case in awkward():
        if case.words.startswith("12 "):
            for by in (-1, 2, 0, case.size, -2 * case.size - 1):
                yield _shifted(case, by)
            matrices = tuple((tensor.reshape(3, 4),) for (tensor,) in case.arguments)
            yield _shifted(Case(case.size, matrices, "a matrix of 3 × 4"), 1)
        yield _shifted(case, 1)


def _shifted(case: Case, by: int) -> Case:
    return Case(case.size, tuple((tensor, by) for (tensor,) in case.arguments), f"by={by}, {case.words}")


@grader
def hand_over(answer: Callable[[Tensor], Tensor]) -> Verdict:
    """Grade the passing of tensors whose length the receiver does not know.

    Args:
        answer: ``hand_over(tensor)`` runs on every rank, in groups of 2, 3 and 4, and returns the tensor of rank
            ``(rank - 1) % world_size``. The tensors have one dimension and one dtype, and other lengths on each
            rank, zero among them. Par is two messages per rank, with 8 bytes beside those of the rank's tensor.

    Exercise of the chapter *point-to-point*.
    """

    tried = sizes()

    def aim(case: Case, given: Sequence[Tensor]) -> Aim:
        wanted = [given[rank - 1] for rank in range(case.size)]
        return Aim(wanted, [2] * case.size, [tensor.nbytes + LENGTH_BYTES for tensor in given])

    ranks = _last(answer, list(_unequal(tried)), aim)
    most = max(attempt.messages for attempt in ranks)
    return correct(
        f"with {listed(tried)} ranks every tensor arrived, whatever its length. Messages per rank: yours {most}, par 2."
    )


def _unequal(tried: Sequence[int]) -> Iterator[Case]:
    import torch

    for size in tried:
        for lengths in LENGTHS:
            for dtype, step in ((torch.float32, 1), (torch.int64, 1), (torch.float32, 2)):
                given = [
                    ((torch.arange(length * step) * (rank + 2) + 10 * rank + 1) % 97).to(dtype)[::step]
                    for rank, length in enumerate(lengths[:size])
                ]
                kind = str(dtype).removeprefix("torch.")
                words = f"{', '.join(map(str, lengths[: size - 1]))} and {lengths[size - 1]} elements of {kind}"
                words += ", every other of a tensor" if step > 1 else ""
                yield Case(size, tuple((tensor,) for tensor in given), words)


def _last(answer: Callable, cases: Sequence[Case], aim: Callable[[Case, Sequence[Tensor]], Aim]) -> Sequence[Attempt]:
    """Try an answer and return what the ranks did in the last case, where all are right.

    Tensors that are not contiguous come last: torch raises where an answer sends one, and an error ends a round
    before the values of its other cases could be compared.
    """
    ranks: Sequence[Attempt] = ()
    for whole in (True, False):
        batch = [case for case in cases if all(tensor.is_contiguous() for tensor, *_ in case.arguments) is whole]
        for case, ranks in zip(batch, attempts(answer, batch), strict=True):
            given = [tensor for tensor, *_ in case.arguments]
            goal = aim(case, given)
            if told := _values(ranks, given, goal.wanted) or _score(ranks, goal):
                raise NotYet(f"With {case}: {told}")
    return ranks


# -- what is said of one case ------------------------------------------------------------------------------------


def _values(ranks: Sequence[Attempt], given: Sequence[Tensor], wanted: Sequence[Tensor]) -> str:
    import torch

    for rank, attempt in enumerate(ranks):
        if not torch.equal(attempt.given, given[rank]):
            return f"rank {rank}: the tensor that it was given has changed; work on a copy."
        if told := difference(attempt.result, wanted[rank], given[rank]):
            return f"rank {rank}: {told}{_stranger(attempt.result, rank, given)}"
    return ""


def _stranger(result: object, rank: int, given: Sequence[Tensor]) -> str:
    """Say whose tensor an answer is, where it is another rank's."""
    import torch

    for owner, tensor in enumerate(given):
        if owner != rank and isinstance(result, torch.Tensor) and tensor.numel() and torch.equal(result, tensor):
            return f" That is the tensor of rank {owner}."
    return ""


def _score(ranks: Sequence[Attempt], goal: Aim) -> str:
    for rank, attempt in enumerate(ranks):
        if others := sorted(set(attempt.calls) - {"send", "recv"}):
            return f"the answer calls {others[0]}; sends and receives are enough."
        messages, payload = goal.messages[rank], goal.payload[rank]
        if attempt.messages > messages:
            plural = "s" * (attempt.messages != 1)
            return f"right, but rank {rank} sent {attempt.messages} message{plural}, par is {messages}."
        if attempt.payload > payload:
            return f"right, but rank {rank} sent {attempt.payload} bytes, par is {payload}."
    return ""
