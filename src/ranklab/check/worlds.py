"""Answers that ranks compute together: tried on 2, 3 and 4 of them with awkward tensors, against one process."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..rank import smaller
from ..world import current
from .grading import PREPARING, called, on_ranks
from .verdict import NotYet, Verdict, correct, not_yet, say_afterwards

if TYPE_CHECKING:
    from torch import Tensor

SIZES = (2, 3, 4)
LENGTHS = (0, 1, 7, 12, 1000)  # nothing, fewer than ranks, does not divide, divides, large enough to matter
# Further ones, so that on every number of ranks every remainder is left by a length that is longer than that.
REMAINDERS = (("int64", 11, 1), ("float64", 9, 1), ("float32", 10, 2))  # dtype, length, stride
_rounds = itertools.count()


@dataclass(frozen=True)
class Case:
    """One call of the answer on the first ``size`` ranks.

    Attributes:
        size: how many ranks.
        arguments: what each of them is given, by rank; the first is the rank's tensor.
        words: what it is like, for the verdict: "7 elements of int64".
    """

    size: int
    arguments: tuple[tuple, ...]
    words: str

    def __str__(self) -> str:
        return f"{self.size} ranks and {self.words}"


def sizes() -> list[int]:
    """Return those of ``SIZES`` that the notebook has ranks for.

    Raises:
        NotYet: there is none; says what to do.
    """
    found = [size for size in SIZES if size <= current().size]
    if not found:
        raise NotYet("This exercise needs at least two ranks: world.stop(), then world = ranklab.start(4).")
    return found


def awkward(sizes: Sequence[int] = SIZES) -> Iterator[Case]:
    """Yield cases with tensors that break answers: empty, one element, lengths that do not divide, integers, a column.

    Every value is a small whole number, so that a sum is exact in whatever order it is added.

    Args:
        sizes: the world sizes to try; those that the notebook has not are left out.
    """
    import torch

    for size in sizes:
        if size > current().size:
            continue
        for kind, length, stride in [*(("float32", length, 1) for length in LENGTHS), *REMAINDERS]:
            given = tuple((_tensor(rank, length, getattr(torch, kind), stride),) for rank in range(size))
            words = f"{length} element{'s' * (length != 1)} of {kind}{', every other of a tensor' * (stride > 1)}"
            yield Case(size, given, words)


def _tensor(rank: int, length: int, dtype: Any, stride: int) -> Tensor:
    import torch

    # No two ranks and no two neighbours alike, so that a chunk in the wrong place shows.
    values = (torch.arange(length * stride) * (rank + 2) + 10 * rank + 1) % 97
    return values.to(dtype)[::stride]


def attempts(
    answer: Callable, cases: Sequence[Case], hung: str = "", patience: float = 1
) -> list[list[smaller.Attempt]]:
    """Run an answer on the ranks.

    Args:
        answer: called on each rank with its arguments, inside a process group of ``case.size`` ranks.
        cases: what to try, in the order of their sizes; the deadline is for all cases of one size.
        hung: what is said further where they did not end by then.
        patience: how many times the deadline of an answer it is.

    Returns:
        For each case what every rank did, in rank order.

    Raises:
        NotYet: there is no result; says why.
    """
    had_group = _open_store()
    done, problem = [], ""
    for size, of_size in itertools.groupby(cases, key=lambda case: case.size):
        given = [case.arguments for case in of_size]
        padded = [(*each, *[()] * (current().size - size)) for each in given]
        results, problem = called(smaller.attempt, answer, _round(), size, padded, patience=patience)
        if problem:
            advice = f" {hung}" if hung and problem.startswith("After ") else ""
            problem = f"With {size} ranks: {problem}{advice}"
            with contextlib.suppress(NotYet):
                _open_store()  # whoever was freed from a wait has lost its connection to the store
            break
        done += [[results[rank][number] for rank in range(size)] for number in range(len(given))]
    if had_group:
        rejoin()
    if problem:
        raise NotYet(problem)
    return done


def every_rank(
    answer: Callable, cases: Sequence[Case], wrong: Callable[[Any, Case, int], str], right: str, hung: str = ""
) -> Verdict:
    """Grade an answer by what it returns on every rank: one call of a collective is par.

    Args:
        answer: called on each rank with its arguments, inside a process group of ``case.size`` ranks.
        cases: what to try, in the order of their sizes.
        wrong: says what is wrong with what a rank returned in a case, "" where nothing is.
        right: what a right answer is told before its number of calls: "6 test sets on 2 and 4 ranks."
        hung: what is said further where the ranks did not end by the deadline.

    Raises:
        NotYet: there is no result; says why.
    """
    tried = attempts(answer, cases, hung=hung)
    for case, ranks in zip(cases, tried, strict=True):
        for rank, attempt in enumerate(ranks):
            if problem := wrong(attempt.result, case, rank):
                return not_yet(f"With {case}: rank {rank}: {problem}")
    calls = max(sum(attempt.calls.values()) for ranks in tried for attempt in ranks)
    return correct(f"{right} You made {calls} call{'s' * (calls != 1)}, par is 1.")


def a_number(got: Any) -> tuple[float, str]:
    """Return the number that a rank returned, in a tensor or not, and what is wrong with it, "" where it is one."""
    import torch

    if isinstance(got, torch.Tensor) and got.numel() == 1:
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        what = "nothing (None)" if got is None else f"a {type(got).__name__}"
        return 0.0, f"the answer is {what}, a number is expected."
    return got, ""


def rejoin(port: int | None = None) -> None:
    """Make the reader's group of all ranks again; where it cannot be made, say what to do.

    Args:
        port: of the store on rank 0, where the ranks have to connect to it first.
    """
    problem = ""
    if port is not None:
        _, problem = called(smaller.connect, port, patience=PREPARING)
    if not problem:
        _, problem = called(smaller.rejoin, _round(), patience=PREPARING)
    if problem:
        say_afterwards('Your process group could not be made again: call dist.init_process_group("gloo").')


def _round() -> str:
    return f"round {next(_rounds)}"


def _open_store() -> bool:
    """Open a store where groups can meet and connect every rank to it; return whether there is a group."""
    opened = on_ranks(smaller.open_store, patience=PREPARING)
    on_ranks(smaller.connect, opened[0][0], patience=PREPARING)
    return opened[0][1]


def difference(got: Any, wanted: Tensor, given: Tensor | None = None) -> str:
    """Say how a tensor differs from the one-process answer, "" where it does not.

    Args:
        got: what a rank returned, or left in its tensor.
        wanted: the one-process answer; integers must be equal, floats close (``torch.allclose``).
        given: what the rank was given, to recognise a tensor that was left as it was.
    """
    import torch

    if not isinstance(got, torch.Tensor):
        what = "nothing (None)" if got is None else f"a {type(got).__name__}"
        return f"the answer is {what}, a tensor is expected."
    if got.shape != wanted.shape:
        return f"the shape is {list(got.shape)}, expected {list(wanted.shape)}."
    if got.dtype != wanted.dtype:
        return f"the dtype is {_kind(got)}, expected {_kind(wanted)}."
    if torch.allclose(got.double(), wanted.double(), rtol=1e-5, atol=1e-6):
        return ""
    place = int((~torch.isclose(got.double(), wanted.double(), rtol=1e-5, atol=1e-6)).flatten().nonzero()[0])
    told = f"element {place} is {_number(got, place)}, one process gets {_number(wanted, place)}."
    if given is not None and given.shape == got.shape and torch.equal(got, given):
        told += " That is the rank's own tensor, unchanged."
    return told


def _kind(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _number(tensor: Tensor, place: int) -> str:
    value = tensor.flatten()[place].item()
    return f"{value:g}" if isinstance(value, float) else str(value)
