"""Graders of the chapter *cost-of-talking*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

from collections.abc import Callable

from ..grading import asked, number
from ..verdict import NotYet, Verdict, correct, grader, not_yet

MOVED = {  # how often the whole array passes the busiest link, in n-ths: what nccl-tests multiplies by
    "all_reduce": lambda ranks: 2 * (ranks - 1) / ranks,
    "reduce_scatter": lambda ranks: (ranks - 1) / ranks,
    "all_gather": lambda ranks: (ranks - 1) / ranks,
    "all_to_all": lambda ranks: (ranks - 1) / ranks,
    "broadcast": lambda ranks: 1.0,
    "reduce": lambda ranks: 1.0,
}
WORLDS = ((5, 4e6), (2, 16e6), (8, 1e9), (512, 1e8))
LINK = 12.5e9  # bytes per second
COUNTS = (2, 3, 4, 5, 8, 64, 100, 512)
ALPHA, BETA = 1e-4, 1e-9
OTHERS = ((1e-5, 1e-9), (1e-4, 1e-10))  # α and β of other networks, tried where all choices for the first are right
TOLERANCE = 0.01


@grader
def bus_bandwidth(answer: Callable[[str, int, float, float], float]) -> Verdict:
    """Grade bus bandwidths against a link of known rate, on which every operation takes as long as it must.

    Args:
        answer: ``bus_bandwidth(operation, ranks, size, seconds)`` returns bytes per second, as nccl-tests define them;
            ``size`` is the whole array. Six operations with 2, 4, 8 and 512 ranks, 1 % allowed.

    Exercise of the chapter *cost-of-talking*.
    """
    for operation, moved in MOVED.items():
        for ranks, size in WORLDS:
            seconds = moved(ranks) * size / LINK
            where = f"{operation} of {size / 1e6:g} MB on {ranks} ranks"
            given = number(answer, where, operation, ranks, size, seconds)
            if not _close(given, LINK):
                told = f"your answer is {given / LINK:.3g} times the rate of the link"
                why = _first(_bus_slips(operation, ranks, size, seconds), given)
                return not_yet(f"{where}: {told}{': ' + why if why else '.'}")
    return correct(f"in {len(MOVED) * len(WORLDS)} measurements you found the rate of the link.")


def _bus_slips(operation: str, ranks: int, size: float, seconds: float) -> list[tuple[float, str]]:
    algorithm, ring = size / seconds, (ranks - 1) / ranks
    slips = [
        (algorithm, "that is the algorithm bandwidth, size / seconds."),
        (8 * LINK, "the answer is in bytes per second, not in bits."),
        (algorithm * algorithm / LINK, "the factor belongs above the line: multiply by it."),
    ]
    if operation == "all_reduce":
        slips += [
            (algorithm * ring, "an all_reduce moves the data twice: once to add, once to hand out."),
            (algorithm * 2, "a rank does not send its own part: 2 (n − 1)/n, not 2."),
        ]
    else:
        slips += [
            (algorithm * 2 * ring, "only all_reduce moves the data twice."),
            (algorithm * ring, "the root sends or receives the whole array, not (n − 1)/n of it."),
        ]
    return [*slips, *((algorithm * k * (ranks - 1), "divide by n: a rank sends n-ths of the array.") for k in (1, 2))]


@grader
def choose(answer: Callable[[int, float, float, float], str]) -> Verdict:
    """Grade the choice between ring and tree on both sides of each crossing.

    Args:
        answer: ``choose(ranks, size, alpha, beta)`` returns ``"ring"`` or ``"tree"``, whichever takes less time by the
            model. 48 choices with 2 to 512 ranks; the verdict says how many are right.

    Exercise of the chapter *cost-of-talking*.
    """
    wrong, total = _wrong_choices(answer, ALPHA, BETA)
    if not wrong:
        others = [each for network in OTHERS for each in _wrong_choices(answer, *network)[0]]
        if not others:
            return correct(f"{total} of {total}, on both sides of every crossing.")
        given, where, ring, tree = others[0]
        told = f"you say {given}; a ring takes {ring / tree:.3g} times as long as a tree"
        return not_yet(f"{total} of {total} are right with α = {ALPHA:g} and β = {BETA:g}. {where}: {told}.")
    given, where, ring, tree = wrong[0]
    counted = f"{total - len(wrong)} of {total} are right. The first that is not: {where}"
    told = f"you say {given}; a ring takes {ring / tree:.3g} times as long as a tree"
    return not_yet(f"{counted}: {told}.{_why_choice(wrong)}")


def _wrong_choices(answer: Callable, alpha: float, beta: float) -> tuple[list[tuple[str, str, float, float]], int]:
    """Return the choices that are wrong for one network, and how many were asked for."""
    wrong, total = [], 0
    for ranks in COUNTS:
        for size in _around(ranks, alpha, beta):
            total += 1
            where = f"{ranks} ranks, {size:.0f} bytes, α = {alpha:g} and β = {beta:g}"
            ring, tree = _ring(ranks, size, alpha, beta), _tree(ranks, size, alpha, beta)
            expected = "ring" if ring < tree else "tree"
            given, problem = asked(answer, ranks, size, alpha, beta)
            if not problem and not (isinstance(given, str) and given in ("ring", "tree")):
                problem = f"your answer is {given!r}, it should be 'ring' or 'tree'."
            if problem:
                raise NotYet(f"{where}: {problem}")
            if given != expected:
                wrong.append((given, where, ring, tree))
    return wrong, total


def _around(ranks: int, alpha: float, beta: float) -> list[float]:
    """Return sizes on both sides of where ring and tree take equally long."""
    levels = (ranks - 1).bit_length()
    saved, extra = 2 * (ranks - 1) - 2 * levels, 2 * levels - 2 * (ranks - 1) / ranks
    crossing = saved / extra * alpha / beta
    return [1e3, 1e5, 1e7] + [max(1e3, crossing * factor) for factor in (0.2, 0.9, 1.1)]


def _ring(ranks: int, size: float, alpha: float, beta: float) -> float:
    """Return the seconds of a ring, one step after the other; in a step every rank passes one part on."""
    return sum(alpha + size / ranks * beta for _ in range(2 * (ranks - 1)))


def _tree(ranks: int, size: float, alpha: float, beta: float) -> float:
    """Return the seconds of a binomial tree up to one rank and down again; each level carries the whole tensor."""
    seconds, reached = 0.0, 1
    while reached < ranks:
        reached, seconds = 2 * reached, seconds + 2 * (alpha + size * beta)
    return seconds


def _why_choice(wrong: list[tuple[str, str, float, float]]) -> str:
    if all(given == "ring" for given, *_ in wrong):
        return " A small tensor does not pay for 2 (N − 1) steps."
    if all(given == "tree" for given, *_ in wrong):
        return " A tree sends the whole tensor at each level, a ring an N-th per step."
    return " Where they cross depends on the number of ranks."


def _close(given: float, expected: float) -> bool:
    return abs(given - expected) <= TOLERANCE * expected + 1e-15


def _first(slips: list[tuple[float, str]], given: float) -> str:
    return next((why for slip, why in slips if _close(given, slip)), "")
