"""Graders of the chapter *mingpt*: a place in the data, a snapshot that all ranks agree on, and a causal mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..grading import asked, listed
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor

# Steps and batch of each part of a job, then the rows of an epoch.
HISTORIES: tuple[tuple[list[tuple[int, int]], int], ...] = (
    ([(5, 4)], 20),
    ([(7, 4)], 20),
    ([(7, 4)], 22),
    ([(5, 8), (4, 4)], 30),
    ([(2, 4), (1, 8), (2, 12)], 30),
    ([(9, 6), (9, 4), (9, 5)], 23),
    ([], 10),
)
# Who found which snapshot, by its number of steps; None found nothing.
FOUND = {
    2: ((50, None), (None, 50), (50, 100), (None, None), (0, None)),
    3: ((None, 150, 100), (None, 0, None)),
    4: ((50, 50, None, None), (None, None, 150, 150), (200, 50, 100, 150), (None, None, None, None)),
}
# Queries and keys of one call: all characters, then fewer queries, then one.
LENGTHS = ((6, 6), (1, 6), (3, 6), (1, 1))


# -- place -------------------------------------------------------------------------------------------------------


@grader
def place(answer: Callable[[list[tuple[int, int]], int], tuple[int, int]]) -> Verdict:
    """Grade where the next step of a job begins whose batch changed.

    Args:
        answer: ``place(history, rows)`` gets a list of (steps, batch) and the rows of an epoch, and returns the number
            of the epoch and the rows that it has taken. A step for which too few rows are left begins the next epoch.

    Exercise of the chapter *mingpt*.
    """
    for history, rows in HISTORIES:
        where, wanted = f"history {history}, {rows} rows", _placed(history, rows)
        given, problem = asked(answer, list(history), rows)
        if not problem and not _is_pair(given):
            problem = f"your answer is {given!r}, a pair of whole numbers is expected."
        if not problem and _begun(given, rows) != _begun(wanted, rows):
            problem = f"you say {tuple(given)}, the job is at {wanted}.{_place_slip(tuple(given), history, rows)}"
        if problem:
            return not_yet(f"With {where}: {problem}")
    return correct(f"{len(HISTORIES)} jobs go on where they stopped.")


def _is_pair(given: Any) -> bool:
    return (
        isinstance(given, (tuple, list))
        and len(given) == 2
        and all(isinstance(part, int) and not isinstance(part, bool) for part in given)
    )


def _begun(given: Sequence[int], rows: int) -> tuple[int, int]:
    """Return the place with an epoch that is used up counted as the next one: they are the same."""
    epoch, taken = given
    return (epoch + 1, 0) if taken == rows else (epoch, taken)


def _placed(history: Sequence[tuple[int, int]], rows: int) -> tuple[int, int]:
    epoch = taken = 0
    for steps, batch in history:
        for _ in range(steps):
            if taken + batch > rows:
                epoch, taken = epoch + 1, 0
            taken += batch
    return epoch, taken


def _place_slip(given: tuple[int, ...], history: Sequence[tuple[int, int]], rows: int) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    done, taken = sum(steps for steps, _ in history), sum(steps * batch for steps, batch in history)
    slips = [
        (divmod(taken, rows), "Rows that are left at the end of an epoch are not taken: leave them out."),
        ((0, taken), "The next epoch begins when too few rows are left."),
    ]
    for batch in {history[0][1], history[-1][1]} if history else ():
        epoch, steps = divmod(done, rows // batch)
        slips.append(((epoch, steps * batch), "The steps of each part count with the batch of that part."))
        slips.append(((epoch, steps), "The second number counts rows, not steps."))
    return next((f" {sentence}" for slip, sentence in slips if given == slip), "")


# -- newest ------------------------------------------------------------------------------------------------------


@grader
def newest(answer: Callable[[dict | None], dict | None]) -> Verdict:
    """Grade the choice of the snapshot that all ranks go on from.

    Args:
        answer: ``newest(found)`` runs on every rank, inside a process group of 2, 3 and 4 ranks. ``found`` is the
            snapshot that the rank found, a dictionary with ``done`` steps, or None. It returns on every rank the
            snapshot with the most steps, or None where nobody has one.

    Exercise of the chapter *mingpt*.
    """
    tried = sizes()
    cases = [
        Case(size, tuple((_snapshot(done),) for done in found), _in_words(found))
        for size in tried
        for found in FOUND[size]
    ]
    hung = "Every rank has to make the same calls, whatever it found."
    for case, ranks in zip(cases, attempts(answer, cases, hung=hung), strict=True):
        for rank, attempt in enumerate(ranks):
            if problem := _wrong_snapshot(attempt.result, case, rank):
                return not_yet(f"With {case}: rank {rank}: {problem}")
    return correct(f"{len(cases)} restarts on {listed(tried)} ranks, and all ranks go on from the newest snapshot.")


def _snapshot(done: int | None) -> dict | None:
    import torch

    return None if done is None else {"done": done, "model": torch.full((3,), float(done))}


def _in_words(found: Sequence[int | None]) -> str:
    each = [f"rank {rank} found {_step(done)}" for rank, done in enumerate(found)]
    return ", ".join(each)


def _step(done: int | None) -> str:
    return "nothing" if done is None else f"step {done}"


def _wrong_snapshot(got: Any, case: Case, rank: int) -> str:
    """Say what is wrong with the snapshot of one rank, "" where nothing is."""
    import torch

    found = [arguments[0] and arguments[0]["done"] for arguments in case.arguments]
    wanted = max((done for done in found if done is not None), default=None)
    if got is None and wanted is None:
        return ""
    if got is not None and not (isinstance(got, dict) and "done" in got):
        return f"your function returned {type(got).__name__}, not a snapshot."
    done = None if got is None else got["done"]
    if done == wanted:
        given = got.get("model") if isinstance(got, dict) else None
        right = isinstance(given, torch.Tensor) and torch.equal(given, torch.full((3,), float(done or 0)))
        return "" if right else "the number of steps is right, the model is another one."
    told = f"it goes on from {_step(done)}, the newest is {_step(wanted)}."
    oldest = min(-1 if one is None else one for one in found)
    slips = [
        (found[0], "That is what rank 0 found."),
        (found[rank], "That is what the rank itself found."),
        (None if oldest < 0 else oldest, "That is the oldest."),
    ]
    return told + next((f" {sentence}" for slip, sentence in slips if done == slip), "")


# -- attend ------------------------------------------------------------------------------------------------------


@grader
def attend(answer: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Verdict:
    """Grade causal attention written by hand, where the queries are those of the last characters.

    Args:
        answer: ``attend(query, key, value)`` gets (rows, heads, length, width) and returns the attention of each
            query to its own character and those before it.

    Exercise of the chapter *mingpt*.
    """
    for queries, keys in LENGTHS:
        query, key, value = _drawn(queries, keys)
        wanted = _attended(query, key, value)
        where = f"{queries} {'query' if queries == 1 else 'queries'} and {keys} key{'s' * (keys > 1)}"
        given, problem = asked(answer, query.clone(), key.clone(), value.clone())
        if not problem and (told := difference(given, wanted)):
            problem = told + _attend_slip(given, query, key, value)
        if problem:
            return not_yet(f"With {where}: {problem}")
    return correct(f"{len(LENGTHS)} of {len(LENGTHS)} lengths, one query for many keys among them.")


def _drawn(queries: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    import torch

    draw = torch.Generator().manual_seed(queries + keys)
    query = 2 * torch.randn(2, 3, queries, 8, generator=draw)
    key, value = torch.randn(2, 2, 3, keys, 8, generator=draw)
    return query, key, value


def _attended(query: Tensor, key: Tensor, value: Tensor, first: int | None = None, scaled: bool = True) -> Tensor:
    """Return the attention where query 0 sees the keys up to ``first``; by default the sequences end together."""
    import torch

    scores = query @ key.transpose(-2, -1) / (query.shape[-1] ** 0.5 if scaled else 1)
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool)
    hidden = hidden.triu(1 + (key.shape[2] - query.shape[2] if first is None else first))
    return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ value


def _attend_slip(got: Any, query: Tensor, key: Tensor, value: Tensor) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    import torch

    if not isinstance(got, torch.Tensor) or got.shape != query.shape:
        return ""
    ends = key.shape[2] - query.shape[2]
    chances = (query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(-1)
    slips = [
        (_attended(query, key, value, key.shape[2]), "Every query sees all keys: there is no mask."),
        (_attended(query, key, value, 0), "Query 0 sees only key 0: the two sequences have to end together."),
        (_attended(query, key, value, ends - 1), "A character sees itself, too."),
        (_attended(query, key, value, ends + 1), "A character sees the one after it, which it is to predict."),
        (_attended(query, key, value, scaled=False), "Divide the scores by the root of the width."),
        (chances.tril(ends) @ value, "Mask before softmax: afterwards the chances of a row no longer add up to 1."),
    ]
    for slip, sentence in slips:
        if torch.allclose(got.double(), slip.double(), atol=1e-4, equal_nan=True):
            return f" {sentence}"
    return " A row without any key gives nan." if got.isnan().any() else ""
