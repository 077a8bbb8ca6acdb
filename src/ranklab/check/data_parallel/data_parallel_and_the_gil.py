"""Graders of the chapter *data-parallel-and-the-gil*: replicas run by threads, and what their changes leave behind."""

from __future__ import annotations

import functools
import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any

from ...rank.trace import describe
from ...system.starving import FairClock
from ..grading import asked, on_ranks
from ..verdict import Verdict, correct, grader, not_yet

if TYPE_CHECKING:
    from torch import Tensor

GROUPS = (2, 3, 4)
PATIENCE, LOOK = 1.0, 0.05  # seconds that a replica could have used, waiting for the others; and between two looks
STATE = ("calls", "seen", "added", "replaced")


# -- run_replicas ------------------------------------------------------------------------------------------------


@grader
def run_replicas(answer: Callable[[Sequence[Callable], Sequence[Tensor]], Sequence[Tensor]]) -> Verdict:
    """Grade the third step of DataParallel: replicas run at once by threads, as ``parallel_apply`` runs them.

    Args:
        answer: ``run_replicas(replicas, chunks)`` gives chunk i to replica i, runs all of them at the same time in
            threads, and returns their outputs in order. It carries grad mode over to the threads, and raises the
            error of the first replica, by number, that failed. It runs on the ranks, under a deadline.

    Exercise of the chapter *data-parallel-and-the-gil*.
    """
    told = on_ranks(functools.partial(_try, answer))
    if wrong := [rank for rank, problem in enumerate(told) if problem]:
        where = "With" if len(wrong) == len(told) else f"On rank {wrong[0]}, with"
        return not_yet(f"{where} {told[wrong[0]]}")
    groups = len(GROUPS) * len(TRIALS)
    return correct(f"{groups} of {groups} groups of replicas, at once, in order, without gradients, and failing.")


def _try(answer: Callable) -> str:
    """Runs on a rank: every trial with every group; the first problem, "" for none."""
    hook, threading.excepthook = threading.excepthook, lambda _: None  # an answer's lost errors stay out of the panel
    try:
        for trial, count in itertools.product(TRIALS, GROUPS):
            if problem := trial(answer, count):
                return f"{count} replicas: {problem}"
    finally:
        threading.excepthook = hook
    return ""


def _chunks(count: int) -> list[Tensor]:
    import torch

    return [torch.full((number + 1,), 10.0 * number) for number in range(count)]


def _at_once(answer: Callable, count: int) -> str:
    """Every replica waits for all others: one after another, nobody comes."""
    everyone = threading.Event()
    arrived: list[Tensor] = []
    alone: list[Tensor] = []

    def replica(chunk: Tensor) -> Tensor:
        arrived.append(chunk)
        if len(arrived) == count:
            everyone.set()
        clock = FairClock([os.getpid()])
        while not everyone.wait(LOOK) and not alone:
            if clock() > PATIENCE:
                alone.append(chunk)
        return chunk + 1

    try:
        answer([replica] * count, _chunks(count))
    except Exception as error:
        return f"your answer raised {describe(error)}"
    if alone:
        return "they do not run at once: one waited a second for the others, in vain."
    # Who went on first is chance, so a wrong order would show in some runs only: _in_order looks at it.
    return ""


def _in_order(answer: Callable, count: int) -> str:
    """The first replica is the last to finish."""
    finished = []

    def replica(number: int, chunk: Tensor) -> Tensor:
        time.sleep(0.03 * (count - number))
        finished.append(number)
        return chunk + number

    replicas = [functools.partial(replica, number) for number in range(count)]
    try:
        outputs = answer(replicas, _chunks(count))
    except Exception as error:
        return f"your answer raised {describe(error)}"
    if len(finished) < count:
        return f"your answer returned when {len(finished)} of {count} had finished: join the threads."
    return _compared(outputs, [chunk + number for number, chunk in enumerate(_chunks(count))])


def _without_grad(answer: Callable, count: int) -> str:
    """Grad mode belongs to a thread."""
    import torch

    weight = torch.ones(1, requires_grad=True)
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            try:
                outputs = answer([lambda chunk: chunk * weight] * count, _chunks(count))
            except Exception as error:
                return f"your answer raised {describe(error)}"
        if any(output.requires_grad != enabled for output in outputs):
            if enabled:
                return "the outputs do not require a gradient, and the caller wants to call backward()."
            return "the caller is under no_grad(), your threads are not: grad mode belongs to a thread."
    return ""


def _failing(answer: Callable, count: int) -> str:
    """All but replica 0 fail, the last one first and then the first one first; the caller has to hear of replica 1."""

    def replica(number: int, place: int, chunk: Tensor) -> Tensor:
        if number == 0:
            return chunk
        time.sleep(0.03 * place)
        raise LookupError(f"replica {number}")

    for places in range(count, 0, -1), range(count):
        replicas = [functools.partial(replica, number, place) for number, place in enumerate(places)]
        try:
            answer(replicas, _chunks(count))
        except LookupError as error:
            if "replica 1" not in str(error):
                when = "first" if places[0] else "last"
                return f"replicas 1 and later fail, and the caller hears of the {when} in time, not of number 1."
        except Exception as error:
            return f"a replica raised LookupError, and the caller gets {type(error).__name__}."
        else:
            return "a replica raised LookupError in its thread, and the caller never hears of it."
    return ""


TRIALS = (_at_once, _in_order, _without_grad, _failing)


def _compared(outputs: Any, wanted: Sequence[Tensor]) -> str:
    """Say how the outputs differ from what the replicas returned, "" where they do not."""
    import torch

    if not isinstance(outputs, (list, tuple)):
        return f"your answer returned {type(outputs).__name__}, not a list of {len(wanted)} outputs."
    if len(outputs) != len(wanted):
        return f"your answer returned {len(outputs)} outputs, not {len(wanted)}."
    for number, (got, right) in enumerate(zip(outputs, wanted, strict=True)):
        if got is None:
            return f"output {number} is None: its thread had not finished, or failed."
        if not isinstance(got, torch.Tensor) or not torch.equal(got, right):
            owner = [other for other, each in enumerate(wanted) if isinstance(got, torch.Tensor) and got.equal(each)]
            told = f"it is that of replica {owner[0]}, in the order of finishing." if owner else "it is another one."
            return f"output {number} is not what replica {number} makes of chunk {number}: {told}"
    return ""


# -- what_remains ------------------------------------------------------------------------------------------------


@grader
def what_remains(answer: Callable[[int, int, int], Sequence[int]]) -> Verdict:
    """Grade the prediction which of a model's changes to itself outlive ``nn.DataParallel``.

    Args:
        answer: ``what_remains(steps, devices, rows)`` returns ``(calls, seen, added, replaced)`` of the chapter's
            module: an attribute counted up, the length of a list appended to, a buffer changed in place, and a buffer
            replaced by a new tensor. It runs in the notebook.

    Exercise of the chapter *data-parallel-and-the-gil*.
    """
    cases = list(itertools.product((1, 3, 10), (0, 1, 2, 4, 8), (1, 5, 16)))
    for case in cases:
        words = "With {} step{}, {} GPU{} and {} row{}".format(*_counted(case))
        given, problem = asked(answer, *case)
        if problem := problem or _state_problem(given, case):
            return not_yet(f"{words}: {problem}")
    return correct(f"{len(cases)} of {len(cases)} cases, all four numbers.")


def _state_problem(given: Any, case: Sequence[int]) -> str:
    if not isinstance(given, (list, tuple)):
        return f"your answer is {given!r}, four numbers are expected."
    if len(given) != len(STATE):
        return f"your answer has {len(given)} numbers, not {len(STATE)}."
    for name, got, right in zip(STATE, given, remaining(*case), strict=True):
        if not isinstance(got, Number) or got != right:
            return f"{name} is {right}, not {got!r}. {_why(name, *case)}"
    return ""


def remaining(steps: int, devices: int, rows: int) -> tuple[int, int, int, int]:
    """Return what is left of the four changes, from the rules of ``DataParallel.forward`` and ``Tensor.chunk``."""
    if devices < 2:
        return steps, steps, steps, steps
    return 0, steps * _pieces(devices, rows), steps, 0


def _pieces(devices: int, rows: int) -> int:
    return -(-rows // -(-rows // devices))


def _counted(case: Sequence[int]) -> list:
    return [part for number in case for part in (number, "" if number == 1 else "s")]


def _why(name: str, steps: int, devices: int, rows: int) -> str:
    """Name the rule that a wrong number breaks."""
    if devices < 2:
        return "With fewer than two GPUs the module itself is called, and nothing is lost."
    if name == "seen":
        count = _pieces(devices, rows)
        return f"All replicas append to one list, and chunk makes {count} of {rows}: {count} in each step."
    if name == "added":
        return "Only replica 0 shares its memory with the module: one addition in place per step."
    if name == "calls" and _pieces(devices, rows) == 1:
        return "One row makes one replica, and that replica is thrown away, too."
    return "Each replica sets its own, and is thrown away after the step."
