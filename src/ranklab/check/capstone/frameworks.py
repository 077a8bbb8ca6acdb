"""Graders of the chapter *frameworks*: where a prepared schedule is, and the metrics of padded batches in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..grading import asked, listed, plain
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, every_rank, sizes

if TYPE_CHECKING:
    from torch import Tensor

# calls, ranks, passes, split_batches
LOOPS = [(6, 1, 1, False), (6, 2, 1, False), (12, 2, 2, False), (7, 4, 2, False), (6, 2, 1, True), (9, 4, 2, True)]
DEALT = {2: ((8, 2), (7, 2), (5, 1), (1, 3)), 3: ((12, 2), (7, 2), (1, 1)), 4: ((16, 2), (9, 2), (1, 2))}  # rows, batch


# -- schedule_steps ----------------------------------------------------------------------------------------------


@grader
def schedule_steps(answer: Callable[[int, int, int, bool], int]) -> Verdict:
    """Grade how many steps a scheduler has made that Accelerate prepared.

    Args:
        answer: ``schedule_steps(calls, ranks, passes, split_batches)`` returns the steps of the scheduler after
            ``calls`` calls of its ``step()``, one a pass, where ``passes`` passes make a step of the optimizer. It
            runs in the notebook.

    Exercise of the chapter *frameworks*.
    """
    for loop in LOOPS:
        calls, ranks, passes, split = loop
        got, problem = asked(answer, *loop)
        if problem:
            return not_yet(f"With calls={calls}, ranks={ranks}, passes={passes}, split_batches={split}: {problem}")
        got = plain(got)
        if isinstance(got, bool) or not isinstance(got, (int, float)):
            return not_yet(f"Your function returned {type(got).__name__}, not a number.")
        wanted = calls // passes * (1 if split else ranks)
        if got != wanted:
            case = f"calls={calls}, ranks={ranks}, passes={passes}, split_batches={split}"
            return not_yet(f"With {case}: you say {got:g}, the scheduler made {wanted}.{_slip(got, *loop)}")
    return correct(f"{len(LOOPS)} loops, and the schedule is where you say.")


def _slip(got: float, calls: int, ranks: int, passes: int, split: bool) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    slips = [
        (calls // passes, "That is the number of optimizer steps: each moves the schedule by more than one."),
        (calls // passes * ranks, "The batches of the loader are split, so an optimizer step is one step."),
        (calls * ranks, "A call within an accumulation does nothing."),
        (calls, "That is the number of calls: those within an accumulation do nothing, the others do more."),
        (calls / passes * ranks, "A step that is not complete does not count."),
        (calls // (passes * ranks), "More ranks make the schedule faster, not slower."),
    ]
    return next((f" {sentence}" for slip, sentence in slips if got == slip), "")


# -- in_order ----------------------------------------------------------------------------------------------------


@grader
def in_order(answer: Callable[[Tensor, int, int], Tensor]) -> Verdict:
    """Grade the values of all rows in order, gathered from ranks that read whole batches in turn.

    Args:
        answer: ``in_order(values, batch, length)`` is called on every rank, inside a process group of 2, 3 and 4
            ranks, with one value for each row that the rank has read; batch number n went to rank n modulo ranks, and
            the rows start again at 0 until every rank has equally many full batches. It returns the values of rows 0
            to ``length`` − 1 on every rank. Par is one call.

    Exercise of the chapter *frameworks*.
    """
    tried = sizes()
    cases = [
        Case(
            size,
            tuple((_values(rows, length), batch, length) for rows in dealt(length, batch, size)),
            f"{length} row{'s' * (length != 1)} in batches of {batch}",
        )
        for size in tried
        for length, batch in DEALT[size]
    ]
    return every_rank(
        answer, cases, _wrong_order, f"{len(cases)} data sets on {listed(tried)} ranks, every row once and in order."
    )


def dealt(length: int, batch: int, size: int) -> list[list[int]]:
    """Return the rows that each of ``size`` ranks reads, as Accelerate deals batches in turn.

    Args:
        length: of the data set.
        batch: rows of a batch.
        size: how many ranks.
    """
    batches = -(-length // (batch * size)) * size
    rows = [number % length for number in range(batches * batch)]
    chunks = [rows[first : first + batch] for first in range(0, len(rows), batch)]
    return [[row for chunk in chunks[rank::size] for row in chunk] for rank in range(size)]


def _values(rows: list[int], length: int) -> Tensor:
    """Return the value of each row; in some data sets they repeat and fall, so that no sort puts them in order."""
    import torch

    numbers = torch.tensor(rows)
    return (numbers * 7 % 5 if length % 2 else numbers) * 10 + 7


def _wrong_order(got: Any, case: Case, rank: int) -> str:
    """Say what is wrong with the values of one rank, "" where nothing is."""
    import torch

    if isinstance(got, (list, tuple)):
        got = torch.tensor(got)
    if not isinstance(got, torch.Tensor):
        return f"the answer is {'nothing (None)' if got is None else f'a {type(got).__name__}'}, a tensor is expected."
    values = [values.tolist() for values, _, _ in case.arguments]
    _, batch, length = case.arguments[0]
    wanted = _values(list(range(length)), length).tolist()
    if (flat := got.tolist()) == wanted:
        return ""
    one_after_another = [value for part in values for value in part]
    in_turn = [value for column in zip(*values, strict=True) for value in column]
    batches = [value for n in range(0, len(values[0]), batch) for part in values for value in part[n : n + batch]]
    slips = [
        (values[rank], "Those are the values of this rank alone."),
        (batches, f"The order is right, but the padding is still there: there {_rows(length)}."),
        (one_after_another, "That is one rank after another: the first batches of all ranks come first."),
        (one_after_another[:length], "That is one rank after another: the first batches of all ranks come first."),
        (in_turn, "Single rows are dealt in turn by torch's sampler. Accelerate deals whole batches."),
        (in_turn[:length], "Single rows are dealt in turn by torch's sampler. Accelerate deals whole batches."),
        (batches[-length:], "You cut the head off; the padding is at the end."),
    ]
    told = next((f" {sentence}" for slip, sentence in slips if flat == slip), "")
    return f"the values are {flat}, expected {wanted}.{told}"


def _rows(length: int) -> str:
    return "is 1 row" if length == 1 else f"are {length} rows"
