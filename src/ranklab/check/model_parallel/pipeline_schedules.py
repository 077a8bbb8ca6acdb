"""Grader of the chapter *pipeline-schedules*; readers find it in :mod:`ranklab.check`.

Its other exercise, ``best_micro``, stands beside those of the chapter *pipelines*.
"""

from __future__ import annotations

from collections.abc import Callable

from ..grading import asked
from ..verdict import Verdict, correct, grader, not_yet

NAMES = ("GPipe", "1F1B", "interleaved", "recomputed")
NONE = "none"
# stages, micro-batches, room and kept
CASES = (
    (4, 8, 8.0, 0.1),
    (4, 8, 5.5, 0.1),
    (4, 8, 5.0, 0.1),
    (4, 8, 4.0, 0.1),
    (4, 8, 3.9, 0.1),
    (4, 8, 1.45, 0.1),
    (4, 8, 1.3, 0.1),
    (4, 32, 5.5, 0.1),
    (8, 8, 8.0, 0.2),
    (8, 8, 7.0, 0.2),
    (8, 8, 2.0, 0.2),
    (8, 64, 11.0, 0.05),
    (8, 64, 11.5, 0.05),
    (8, 64, 1.45, 0.05),
    (2, 4, 2.5, 0.5),
    (2, 4, 2.0, 0.5),
    (2, 4, 1.5, 0.5),
    (16, 16, 9.0, 0.5),
    (16, 64, 20.0, 0.02),
    (16, 64, 1.0, 0.02),
)


def times(stages: int, micro: int) -> dict[str, float]:
    """Return how long a step takes under each name: a micro-batch forward takes a rank 1, backward 2."""
    plain = 3 * (micro + stages - 1)
    return {
        "GPipe": plain,
        "1F1B": plain,
        "interleaved": 3 * micro + 3 * (stages - 1) / 2,
        "recomputed": 4 * (micro + stages - 1),
    }


def held(stages: int, micro: int, kept: float) -> dict[str, float]:
    """Return what rank 0 holds at most under each name, in activations of one micro-batch on one rank."""
    ahead = min(stages, micro)
    chunks = min(2 * micro, stages + 2 * (stages - 1) + 1)
    return {"GPipe": micro, "1F1B": ahead, "interleaved": chunks / 2, "recomputed": ahead * kept + 1}


@grader
def schedule_that_fits(answer: Callable[[int, int, float, float], str]) -> Verdict:
    """Grade the choice of a schedule: the fastest that fits.

    Args:
        answer: ``schedule_that_fits(stages, micro, room, kept)`` returns "GPipe", "1F1B", "interleaved" (1F1B with two
            chunks per rank), "recomputed" (1F1B with recomputation), or "none" if none fits. ``room`` is what rank 0
            can hold, in activations of one micro-batch on one rank; ``kept`` is the part of them that recomputation
            keeps. Of two equally fast ones that fit either is right. It runs in the notebook.

    Exercise of the chapter *pipeline-schedules*.
    """
    for stages, micro, room, kept in CASES:
        where = f"{stages} stages, {micro} micro-batches, room for {room:g}, kept {kept:g}"
        given, problem = asked(answer, stages, micro, room, kept)
        if problem:
            return not_yet(f"{where}: {problem}")
        if not isinstance(given, str) or given not in (*NAMES, NONE):
            return not_yet(f"{where}: your answer is {given!r}; it is one of {', '.join(NAMES)} and {NONE}.")
        took, holds = times(stages, micro), held(stages, micro, kept)
        fitting = [name for name in NAMES if holds[name] <= room + 1e-9]
        if given == NONE:
            if fitting:
                return not_yet(f"{where}: {fitting[-1]} fits, it holds {holds[fitting[-1]]:g}.")
            continue
        if given not in fitting:
            return not_yet(f"{where}: {given} does not fit, rank 0 holds {holds[given]:g}.")
        best = min(fitting, key=took.__getitem__)
        if took[given] > took[best]:
            return not_yet(f"{where}: {given} takes {took[given]:g}, {best} fits too and takes {took[best]:g}.")
    return correct(f"{len(CASES)} of {len(CASES)} pipelines run the fastest schedule that fits.")
