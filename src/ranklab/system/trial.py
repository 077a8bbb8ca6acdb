"""Programs that are tried for some seconds, counted on a clock that knows the load.

The clock stands still while one of them, or what it has started, is ready to run and is not let: a program is given up
when it had the processor and did not come to its end, or when even a patient reader would give up.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from . import load
from .starving import Starvation

# Seconds between two looks at what the programs were given. The system tells of a wait when it is over: what began
# before a look is missed, and with short looks that adds up.
LOOK = 1.0
CEILING = 60.0  # seconds on the wall: nobody waits longer for a look at the machine
BUSY = 0.25  # share of the processors that other programs take, from which on they are the reason


@dataclass(frozen=True)
class Trial:
    """How programs have ended that were tried.

    Attributes:
        problem: what went wrong, one clause with a full stop; "" where all have ended well.
        busy: whether nothing is shown, because other programs took the processors.
    """

    problem: str = ""
    busy: bool = False


def finish(children: Sequence[subprocess.Popen], seconds: float, ceiling: float = CEILING) -> Trial:
    """Wait for programs; end those that had their time.

    Args:
        children: started with ``stderr=PIPE`` and ``text=True``; their last line says what went wrong.
        seconds: for all of them together.
        ceiling: seconds on the wall, however busy the machine is.
    """
    began, end = load.now(), time.monotonic() + ceiling
    waiting, problem, left = list(children), "", seconds
    while waiting and left > 0 and time.monotonic() < end:
        starvation = Starvation(_family(waiting))
        try:
            _, said = waiting[0].communicate(timeout=LOOK)
        except subprocess.TimeoutExpired:
            elapsed, starved = starvation.look()
            left -= elapsed - max(starved.values(), default=0.0)
            continue
        child = waiting.pop(0)
        if child.returncode:
            problem = problem or " ".join(said.strip().splitlines()[-1:]) or f"exit status {child.returncode}"
    for child in waiting:
        child.kill()
        child.communicate()
    if problem or not waiting:
        return Trial(problem)
    others = load.taken_by_others(began, load.now())
    if left > 0 and others >= BUSY:
        why = f"the machine is busy (other programs take {others:.0%} of the processors)."
        return Trial(f"did not finish within {ceiling:g} s; {why}", busy=True)
    return Trial(f"no answer within {seconds if left <= 0 else ceiling:g} s.")


def _family(children: Sequence[subprocess.Popen]) -> list[int]:
    """Return the processes of some programs, and those that they have started."""
    import psutil

    pids = []
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            pids += [child.pid, *(each.pid for each in psutil.Process(child.pid).children(recursive=True))]
    return pids
