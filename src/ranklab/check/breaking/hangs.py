"""Graders of the chapter *hangs*: a loop that all ranks leave together, and recorders that are read."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...layout import name_ranks
from ..grading import asked, listed
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, sizes

if TYPE_CHECKING:
    from torch import Tensor

# The batches of each rank: one ends early, one has none, nobody has any, all have equally many.
LOADERS = {
    2: ((3, 4), (2, 0), (0, 0), (2, 2)),
    3: ((4, 4, 3), (0, 1, 5), (1, 1, 1)),
    4: ((2, 5, 5, 1), (0, 0, 0, 3), (2, 2, 2, 2)),
}
STUCK = "A rank that has no batch has to come to the collective all the same, until nobody has one."


# -- totals ------------------------------------------------------------------------------------------------------


@grader
def totals(answer: Callable[[list[Tensor]], list[float]]) -> Verdict:
    """Grade a loop over loaders of different lengths: every batch is summed, and all ranks end in the same step.

    Args:
        answer: ``totals(batches)`` is called on every rank, inside a process group of 2, 3 and 4 ranks, with this
            rank's list of 1-D float tensors; it returns on every rank the list of the sums of the steps, as long as the
            longest loader. Par is one call a step, and one more.

    Exercise of the chapter *hangs*.
    """
    tried = sizes()
    cases = [Case(size, _loaders(counts), f"{listed(counts)} batches") for size in tried for counts in LOADERS[size]]
    done = attempts(answer, cases, STUCK)
    for case, ranks in zip(cases, done, strict=True):
        for rank, attempt in enumerate(ranks):
            if problem := _wrong_sums(attempt.result, case, rank):
                return not_yet(f"With {case}: rank {rank}: {problem}")
    longest = max(range(len(cases)), key=lambda number: max(len(given[0]) for given in cases[number].arguments))
    steps = max(len(given[0]) for given in cases[longest].arguments)
    calls = max(sum(attempt.calls.values()) for attempt in done[longest])
    return correct(
        f"{len(cases)} sets of loaders on {listed(tried)} ranks, every batch summed once. "
        f"For {steps} steps you made {calls} calls, par is {steps + 1}."
    )


def _loaders(counts: Sequence[int]) -> tuple[tuple[list[Tensor]], ...]:
    """What each rank is given: so many batches, no two with the same sum. In long loaders a step sums to 0."""
    import torch

    nothing = 1 if max(counts) > 4 else None  # a sum of 0 does not mean that nobody had a batch
    return tuple(
        ([torch.tensor([10.0**rank * (step + 1), 2.0 * 10**rank]) * (step != nothing) for step in range(count)],)
        for rank, count in enumerate(counts)
    )


def _wrong_sums(got: Any, case: Case, rank: int) -> str:
    """Say what is wrong with the sums of one rank, "" where nothing is."""
    if not isinstance(got, (list, tuple)):
        return f"the answer is {'nothing (None)' if got is None else f'a {type(got).__name__}'}, a list is expected."
    own = [[batch.sum().item() for batch in given[0]] for given in case.arguments]
    try:
        sums = [float(each) for each in got]
    except (TypeError, ValueError):
        return "a number is expected for each step."
    if sums == (wanted := _by_step(own)):
        return ""
    longest, shortest = len(wanted), min(map(len, own))
    slips = [
        (wanted[:shortest], f"The sums end with the shortest loader, after {shortest} of {longest} steps."),
        ([*wanted, 0.0], "The last step had no batch on any rank: it is no step."),
        (own[rank], "These are the sums of its own batches."),
        (wanted[: wanted.index(0.0)] if 0.0 in wanted else None, "A sum of 0 does not mean that nobody had a batch."),
        (_by_step([(each + each[-1:] * longest)[:longest] for each in own]), "A batch is summed more than once."),
    ]
    told = next((f" {sentence}" for slip, sentence in slips if sums == slip), "")
    return f"the sums are {sums}, one process gets {wanted}.{told}"


def _by_step(own: Sequence[Sequence[float]]) -> list[float]:
    steps = range(max(map(len, own)))
    return [sum(each[step] for each in own if step < len(each)) for step in steps]


# -- suspects ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """What the recorders of a job that hangs hold.

    Attributes:
        words: what has happened.
        traces: the entries of each rank, by rank.
        groups: the ranks of each group, by its name.
        wanted: group, number and ranks of the first call on which a group's ranks do not agree.
    """

    words: str
    traces: list[list[dict]]
    groups: dict[str, list[int]]
    wanted: tuple[str, int, list[int]]


def entry(number: int, name: str = "all_reduce", sizes: Sequence[int] = (4,), group: str = "0", p2p: bool = False):
    """Return an entry with those fields of torch's recorder that say which call it is."""
    return {
        "process_group": (group, "default_pg" if group == "0" else "undefined"),
        "collective_seq_id": number,
        "profiling_name": f"gloo:{name}",
        "input_sizes": [list(sizes)] if sizes else [],
        "is_p2p": p2p,
    }


def jobs() -> list[Job]:
    """Return the jobs that an answer is tried on."""
    four = [entry(number) for number in (1, 2, 3, 4)]
    shorter = [*four[:2], entry(3, sizes=(3,)), *four[3:]]
    late = [entry(number) for number in range(7, 11)]
    pair = [entry(1, "broadcast", group="1"), entry(2, "broadcast", group="1")]
    sent = entry(2, "send", group="0", p2p=True)
    return [
        Job("one rank of three that makes one call fewer", [four, four, four[:3]], {"0": [0, 1, 2]}, ("0", 4, [2])),
        Job(
            "two ranks of three that make one call fewer",
            [four[:2], four, four[:2]],
            {"0": [0, 1, 2]},
            ("0", 3, [0, 2]),
        ),
        Job(
            "one rank of three in another operation",
            [[*four, entry(5)], *[[*four, entry(5, "reduce")]] * 2],
            *({"0": [0, 1, 2]}, ("0", 5, [0])),
        ),
        Job("another shape on one rank of three", [four, shorter, four], {"0": [0, 1, 2]}, ("0", 3, [1])),
        Job(
            "recorders that have forgotten their oldest entries",
            [late, late, [entry(number) for number in range(6, 10)]],
            *({"0": [0, 1, 2]}, ("0", 10, [2])),
        ),
        Job(
            "a group of two among four ranks",
            [four, [*four[:2], pair[0], *four[2:], pair[1]], four, [pair[0], *four]],
            *({"0": [0, 1, 2, 3], "1": [1, 3]}, ("1", 2, [3])),
        ),
        Job("a send on one rank", [[*four[:2], sent, *four[2:]], four, four[:3]], {"0": [0, 1, 2]}, ("0", 4, [2])),
    ]


@grader
def suspects(answer: Callable[[list[list[dict]], dict[str, list[int]]], tuple[str, int, list[int]]]) -> Verdict:
    """Grade a reader of flight recorders: it names the first call that the ranks of a group do not agree on.

    Args:
        answer: ``suspects(traces, groups)`` gets the entries of each rank, as torch's recorder has them, and the ranks
            of each group by its name; it returns the group, the number of the call, and the list of the ranks that
            never made it or, if all made it, of those that made another one than most. It runs in the notebook.

    Exercise of the chapter *hangs*.
    """
    tried = jobs()
    for job in tried:
        got, problem = asked(answer, copy.deepcopy(job.traces), copy.deepcopy(job.groups))
        if problem := problem or _wrong_suspects(got, job):
            return not_yet(f"With {job.words}: {problem}")
    return correct(f"{len(tried)} jobs, and in each the call and the ranks that you name are the right ones.")


def _wrong_suspects(got: Any, job: Job) -> str:
    """Say what is wrong with an answer about one job, "" where nothing is."""
    if got is None:
        return "your answer is None, but the ranks of a group do not agree."
    if not isinstance(got, (tuple, list)) or len(got) != 3:
        return f"your answer is {got!r}, a group, a number and a list of ranks are expected."
    group, number, ranks = got
    try:
        ranks = sorted(ranks)
    except TypeError:
        return f"your ranks are {ranks!r}, a list is expected."
    right_group, right_number, right_ranks = job.wanted
    if group != right_group:
        return f"you name group {group!r}, it is {right_group!r}: count the calls of each group separately."
    if number != right_number:
        return f"you name call {number}, it is {right_number}.{_why_number(number, job)}"
    if ranks == right_ranks:
        return ""
    told = f"you name {name_ranks(ranks) if ranks else 'no rank'}, it is {name_ranks(right_ranks)}."
    members = job.groups[group]
    if set(ranks) - set(members):
        return f"{told} A rank outside of the group makes none of its calls."
    if not set(ranks) & set(right_ranks):
        return f"{told} You named the ranks that wait, or that agree with most."
    return told


def _why_number(number: Any, job: Job) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    group, right, _ = job.wanted
    held = [[each["collective_seq_id"] for each in trace if each["process_group"][0] == group] for trace in job.traces]
    oldest = max(min(numbers) for numbers in held if numbers)
    if number == min(map(len, job.traces)) + 1 and oldest > 1:
        return " The number stands in collective_seq_id: its place in the list is different."
    if isinstance(number, int) and number < oldest:
        return " Some rank has forgotten that one."
    if isinstance(number, int) and number > right:
        return " There is an earlier one: compare operations and shapes, too."
    if number == right - 1:
        return " All ranks made that one: name the one after it."
    return ""
