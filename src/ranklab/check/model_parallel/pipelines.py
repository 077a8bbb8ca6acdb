"""Graders of the chapter *pipelines*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

from ..grading import entries, number
from ..verdict import NotYet, Verdict, correct, grader, not_yet

FORWARD, BACKWARD = 1, 2  # how long a micro-batch takes in a stage
SIZES = ((4, 8), (4, 4), (2, 5), (3, 7), (4, 2), (5, 12), (1, 3), (8, 16))  # stages and micro-batches
PER_ROW = 1e-4  # seconds
SHARES = (0.07, 0.5, 0.25, 0.2, 0.15, 0.03)
TOLERANCE = 0.01

Order = list[tuple[str, int]]


@grader
def within(answer: Callable[[int, int, int, int], Order]) -> Verdict:
    """Grade schedules with room for few micro-batches: each is run with stages of known length.

    Args:
        answer: ``within(stage, stages, micro, room)`` returns what a stage does in order, a list of ``("F", k)`` and
            ``("B", k)``. No stage may hold the activations of more than ``room`` micro-batches at once. A forward
            takes 1, a backward 2, a message nothing; par is 1F1B with at most ``room`` forwards ahead, which can be
            beaten where the room is smaller than the number of stages. It runs in the notebook.

    Exercise of the chapter *pipelines*.
    """
    cases = [(stages, micro, room) for stages, micro in SIZES for room in sorted({1, 2, stages - 1, stages}) if room]
    faster = 0
    for stages, micro, room in cases:
        where = f"{stages} stages, {micro} micro-batches, room {room}"
        orders = []
        for stage in range(stages):
            steps = entries(answer, where, stage, stages, micro, room, what="a list of steps")
            if strange := [step for step in steps if not _is_pair(step)]:
                return not_yet(f'{where}: stage {stage} does {strange[0]!r}; a step is ("F", k) or ("B", k).')
            orders.append([(what, k) for what, k in steps])
        if why := next(filter(None, (_wrong_steps(*each, micro, room) for each in enumerate(orders))), ""):
            return not_yet(f"{where}: {why}")
        took, stuck = simulate(orders)
        par, _ = simulate([_ahead(stage, stages, micro, room) for stage in range(stages)])
        if stuck:
            return not_yet(f"{where}: {stuck}")
        if took > par:
            why = " One micro-batch after the other leaves room unused." if took == 3 * stages * micro else ""
            return not_yet(f"{where}: your schedule takes {took}, par is {par}.{why}")
        faster += took < par
    beaten = f", {faster} of them faster than par," if faster else " in par time,"
    return correct(f"{len(cases)} pipelines{beaten} and none held more than it had room for.")


def _is_pair(step: Any) -> bool:
    """Say whether something has the form of a step, whatever letter and number it holds."""
    pair = isinstance(step, (tuple, list)) and len(step) == 2
    return pair and isinstance(step[0], str) and isinstance(step[1], numbers.Real)


def _ahead(stage: int, stages: int, micro: int, room: int) -> Order:
    """Return 1F1B with as many forwards ahead as there is room for."""
    ahead = min(room, stages - stage, micro)
    order = [("F", k) for k in range(ahead)]
    for k in range(micro):
        order += [("B", k)] + [("F", k + ahead)] * (k + ahead < micro)
    return order


def _wrong_steps(stage: int, order: Order, micro: int, room: int) -> str:
    """Say what is wrong with the steps of one stage alone, "" where nothing is."""
    wanted = {(what, k) for what in "FB" for k in range(micro)}
    for step in order:
        if step not in wanted:
            return f"stage {stage} does {step!r}, which is no step, or does it twice."
        wanted.discard(step)
    if wanted:
        return f"stage {stage} never does {min(wanted)!r}."
    held: set[int] = set()
    for what, k in order:
        if what == "B" and k not in held:
            return f"stage {stage} goes backward through micro-batch {k} before it went forward."
        held = held | {k} if what == "F" else held - {k}
        if len(held) > room:
            return f"stage {stage} holds {len(held)} micro-batches at {what}{k}."
    return ""


def simulate(orders: Sequence[Order]) -> tuple[int, str]:
    """Run schedules with stages of known length and messages that take no time.

    Returns:
        When the last step ends, and "" or a sentence on which stages wait for one another.
    """
    ended: dict[tuple[str, int, int], int] = {}
    free, place = [0] * len(orders), [0] * len(orders)
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            while place[stage] < len(order):
                what, k = order[place[stage]]
                source = stage - 1 if what == "F" else stage + 1
                if 0 <= source < len(orders) and (what, source, k) not in ended:
                    break
                start = max(free[stage], ended.get((what, source, k), 0))
                free[stage] = start + (FORWARD if what == "F" else BACKWARD)
                ended[what, stage, k] = free[stage]
                place[stage], moved = place[stage] + 1, True
    for stage, order in enumerate(orders):
        if place[stage] < len(order):
            what, k = order[place[stage]]
            source = stage - 1 if what == "F" else stage + 1
            return max(free), f"stage {stage} waits for {what}{k} of stage {source}, and nobody can go on."
    return max(free), ""


@grader
def fewest(answer: Callable[[int, float], int]) -> Verdict:
    """Grade the fewest micro-batches that keep the bubble below a share of the step.

    Args:
        answer: ``fewest(stages, share)`` returns the smallest number of micro-batches with which GPipe and 1F1B idle
            at most ``share`` of the whole step. Stages are equal, messages take no time. It runs in the notebook.

    Exercise of the chapter *pipelines*.
    """
    cases = [(stages, share) for stages in (4, 1, 2, 8, 64) for share in SHARES]
    for stages, share in cases:
        where = f"{stages} stage{'s' * (stages > 1)}, at most {share:.0%}"
        given = _whole(answer, where, stages, share)
        right = _fewest(stages, share)
        if given != right:
            idle = (stages - 1) / (given + stages - 1) if given > 0 else 1.0
            told = f"{given} micro-batches idle {idle:.1%} of the step" if given > 0 else f"you say {given}"
            return not_yet(f"{where}: {told}.{_why_fewest(given, right, stages, share)}")
    return correct(f"{len(cases)} pipelines, and none with a micro-batch too many.")


def _fewest(stages: int, share: float) -> int:
    micro = 1
    while (stages - 1) / (micro + stages - 1) > share + 1e-12:
        micro += 1
    return micro


def _why_fewest(given: int, right: int, stages: int, share: float) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    slips = [
        ((stages - 1) / share, "That is the bubble as a part of the ideal time, (p − 1)/m."),
        (stages / share, "There are p − 1 slots of bubble, not p."),
        (4 * stages, "Four times the stages is a rule of thumb for one share."),
        (stages * (1 - share) / share, "There are p − 1 slots of bubble, not p."),
    ]
    exact = (stages - 1) * (1 - share) / share
    if given < 1:
        return " There is at least one micro-batch."
    if given == int(exact) and given < right:
        return " A part of a micro-batch too few is too few: round up."
    near = next((why for slip, why in slips if given == math.ceil(slip - 1e-9)), "")
    if near:
        return f" {near}"
    if given == right + 1:
        return " One fewer would do."
    return " That is too many." if given > right else " That is too few."


@grader
def best_micro(answer: Callable[[int, int, float, float], int]) -> Verdict:
    """Grade the choice of the number of micro-batches when each costs something by itself.

    Args:
        answer: ``best_micro(stages, rows, per_row, overhead)`` returns a divisor of ``rows``. A stage takes
            ``overhead`` seconds for a micro-batch, forward and backward together, and ``per_row`` for each of its
            rows. A choice is good if the step takes at most 1 % longer than with the best divisor. 30 pipelines.

    Exercise of the chapter *pipelines*.
    """
    cases = [
        (stages, rows, PER_ROW, overhead)
        for stages in (2, 4, 16)
        for rows in (48, 512)
        for overhead in (0.0, 1e-5, 1e-4, 1e-3, 1e-2)
    ]
    others = [(stages, 96, per_row, 1e-3) for stages in (2, 8) for per_row in (1e-6, 1e-2)]
    wrong = _slow_choices(answer, cases)
    total = f"{len(cases)} of {len(cases)}"
    if not wrong:
        if slow := _slow_choices(answer, others):
            where, given, best, ratio = slow[0]
            told = f"{given} micro-batches take {ratio:.2f} times as long as {best}"
            return not_yet(f"{total} are right with per_row={PER_ROW:g}. {where}: {told}.")
        return correct(f"{total} pipelines are as fast as they can be.")
    where, given, best, ratio = wrong[0]
    told = f"{len(cases) - len(wrong)} of {len(cases)} are right. The first that is not: {where}"
    many, few = (any(sign * (given - best) > 0 for _, given, best, _ in wrong) for sign in (1, -1))
    why = " Where a micro-batch costs something by itself, many of them cost more than they save." if many else ""
    if few:
        why = " Fewer micro-batches mean a larger bubble." if not many else " The best number depends on all four."
    return not_yet(f"{told}: {given} micro-batches take {ratio:.2f} times as long as {best}.{why}")


def _slow_choices(
    answer: Callable, cases: Sequence[tuple[int, int, float, float]]
) -> list[tuple[str, int, int, float]]:
    """Return the pipelines for which a choice is not good: what is asked, the choice, the best one, and the ratio."""
    wrong = []
    for stages, rows, per_row, overhead in cases:
        where = f"stages={stages}, rows={rows}, per_row={per_row:g}, overhead={overhead:g}"
        given = _whole(answer, where, stages, rows, per_row, overhead)
        if given < 1 or rows % given:
            raise NotYet(f"{where}: {given} is no divisor of {rows}.")
        took = {m: (m + stages - 1) * (overhead + rows / m * per_row) for m in range(1, rows + 1) if rows % m == 0}
        best = min(took, key=took.__getitem__)
        if took[given] > (1 + TOLERANCE) * took[best]:
            wrong.append((where, given, best, took[given] / took[best]))
    return wrong


def _whole(answer: Callable, where: str, *arguments: Any) -> int:
    """Return the whole number that is the answer in the notebook."""
    given = number(answer, where, *arguments, what="a whole number")
    if given % 1:  # not 0 for nan and inf
        raise NotYet(f"{where}: your answer is {given!r}, it should be a whole number.")
    return int(given)
