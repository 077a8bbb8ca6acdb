"""Graders of the chapter *silently-wrong*: rows read twice or never, and a fault named from a step's numbers."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..grading import asked, listed, on_ranks
from ..verdict import NotYet, Verdict, correct, grader, not_yet
from ..worlds import Case, every_rank, sizes

if TYPE_CHECKING:
    from torch import Tensor

# Rows by rank, and the number of rows in the dataset: other numbers of rows on each rank, none, two and three of one.
READ: dict[int, list[tuple[Any, ...]]] = {
    2: [([0, 1, 2], [2, 3], 6), ([1, 1, 1], [], 3)],
    3: [([0, 3, 6], [1, 4], [2, 5, 0], 8), ([4, 4, 1], [], [2, 3, 0], 6)],
    4: [([0, 1], [1, 2], [2, 3], [3], 5), ([], [0, 0], [2], [1], 4)],
}
FAULTS = "nothing", "same rows", "no average", "a sum", "different start", "different rates"
SHOWN = {
    "nothing": "the used gradient is the mean of the ranks' own, and the weights agree before and after",
    "same rows": "all ranks have read the same rows",
    "no average": "each rank used its own gradient",
    "a sum": "the used gradient is the sum of the ranks' own, not the mean",
    "different start": "the weights differ before the step, and the used gradients are equal",
    "different rates": "the weights before the step and the used gradients agree, and the weights after it differ",
}


# -- audit_rows --------------------------------------------------------------------------------------------------


@grader
def audit_rows(answer: Callable[[Tensor, int], tuple[list[int], list[int]]]) -> Verdict:
    """Grade an audit of the rows that a job has read: which were read more than once, and which never.

    Args:
        answer: ``audit_rows(rows, length)`` is called on every rank, inside a process group of 2, 3 and 4 ranks, with
            the row numbers that the rank has read, an int64 tensor, and the number of rows of the dataset. It returns
            on every rank two lists in order: rows that the job has read more than once, rows that nobody has read. Par
            is one call.

    Exercise of the chapter *silently-wrong*.
    """
    import torch

    tried, cases = sizes(), []
    for size in tried:
        for *read, length in READ[size]:
            given = tuple((torch.tensor(rows, dtype=torch.int64), length) for rows in read)
            cases.append(Case(size, given, f"the rows {' and '.join(map(str, read))} of {length}"))
    return every_rank(answer, cases, _wrong_audit, f"{len(cases)} jobs on {listed(tried)} ranks.")


def _audit(rows: list[int], length: int) -> tuple[list[int], list[int]]:
    counts = Counter(rows)
    return [row for row in range(length) if counts[row] > 1], [row for row in range(length) if not counts[row]]


def _wrong_audit(got: Any, case: Case, rank: int) -> str:
    """Say what is wrong with the two lists of one rank, "" where nothing is."""
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return f"the answer is {'nothing (None)' if got is None else repr(got)}, two lists are expected."
    lists = tuple(list(part.tolist() if hasattr(part, "tolist") else part) for part in got)
    read, length = [given[0].tolist() for given in case.arguments], case.arguments[0][1]
    joined = [row for rows in read for row in rows]
    twice, never = wanted = _audit(joined, length)
    if lists == wanted:
        return ""
    own = _audit(read[rank], length)
    sets = _audit([row for rows in read for row in set(rows)], length)
    slips = [
        (own, "These are the rows of this rank alone: the ranks have to put theirs together."),
        (
            (never, twice),
            "Give first the rows read more than once, then those never read.",
        ),
        ((own[0], never), "A row that two ranks have read once each was read twice, too: add up the counts."),
        ((sets[0], never), "A row that one rank has read twice counts, too."),
        ((twice, own[1]), "The first list is right. The second is of this rank alone."),
    ]
    told = next((f" {sentence}" for slip, sentence in slips if lists == slip), "")
    return f"your lists are {lists[0]} and {lists[1]}, expected {twice} and {never}.{told}"


# -- name_fault --------------------------------------------------------------------------------------------------


@grader
def name_fault(answer: Callable[[list[dict]], str]) -> Verdict:
    """Grade a diagnosis: from the numbers that all ranks have of one training step, name what is wrong with the step.

    Args:
        answer: ``name_fault(ranks)`` runs in the notebook. ``ranks`` has a dictionary for each rank: the ``rows`` that
            it has read, its ``own`` gradient before the exchange, the gradient that the step ``used``, and the weights
            ``before`` and ``after`` the step, all of them lists. It returns "nothing", "same rows", "no average", "a
            sum", "different start" or "different rates".

    Exercise of the chapter *silently-wrong*.
    """
    sizes()  # one rank alone has nothing to compare
    steps = [(fault, seed) for seed in range(3) for fault in FAULTS]
    random.Random(18).shuffle(steps)
    by_rank = on_ranks(_contributions, steps)
    for number, (fault, _) in enumerate(steps):
        ranks = _exchanged([of_rank[number] for of_rank in by_rank], fault)
        where = f"Step {number + 1} of {len(steps)}"
        said, problem = asked(answer, ranks)
        if problem:
            raise NotYet(f"{where}: {problem}")
        if said not in FAULTS:
            return not_yet(f"{where}: your answer is {said!r}, it should be one of {', '.join(map(repr, FAULTS))}.")
        if said != fault:
            return not_yet(f"{where}: you say {said!r}, and it is {fault!r}: {SHOWN[fault]}.{_hint(said, fault)}")
    return correct(f"{len(steps)} of {len(steps)} steps, {len(FAULTS) - 1} faults and none.")


def _hint(said: str, fault: str) -> str:
    """Recognise a diagnosis that stops at a symptom; "" for another one."""
    if fault == "different start" and said in ("no average", "different rates"):
        return " Different weights after the step are a symptom of three faults: look at the weights before it."
    if fault == "different rates" and said == "no average":
        return " The weights differ after the step, but the average arrived: compare the used gradients."
    if fault == "nothing" and said in ("a sum", "no average"):
        return " A mean of floats is rounded: ask whether it is nearer to the mean or to the sum."
    if fault == "a sum" and said == "nothing":
        return " All ranks agree, and still all are wrong: compare the used gradient with the own ones."
    if fault == "same rows" and said == "nothing":
        return " All gradients and weights are as they should be; the rows are not."
    return ""


def _contributions(steps: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Runs on a rank: for every step what the rank reads, its own gradient, its weights and its rate."""
    import torch

    rank, size, found = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), []
    for fault, seed in steps:
        draw = torch.Generator().manual_seed(seed)
        data, order = torch.randn(12 * size, 3, generator=draw), torch.randperm(12 * size, generator=draw)
        rows = order[:12] if fault == "same rows" else order[rank::size]
        weights = torch.randn(3, generator=draw) + (0.1 * rank if fault == "different start" else 0)
        weights.requires_grad_()
        loss = (data[rows] @ weights - data[rows].sum(1)).square().mean()
        (own,) = torch.autograd.grad(loss, weights)
        rate = 0.1 / (rank + 1) if fault == "different rates" else 0.1
        found.append({"rows": rows.tolist(), "own": own.tolist(), "before": weights.tolist(), "rate": rate})
    return found


def _exchanged(parts: list[dict[str, Any]], fault: str) -> list[dict[str, list]]:
    """What the ranks see of a step after the exchange that its fault leaves of it."""
    import torch

    total, ranks = torch.tensor([part["own"] for part in parts]).sum(0), []
    for part in parts:
        used = total if fault == "a sum" else total / len(parts)
        if fault == "no average":
            used = torch.tensor(part["own"])
        after = torch.tensor(part["before"]) - part["rate"] * used
        seen = {name: list(part[name]) for name in ("rows", "own", "before")}
        ranks.append({**seen, "used": used.tolist(), "after": after.tolist()})
    return ranks
