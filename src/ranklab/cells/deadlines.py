"""Which seconds count against a cell's deadline. Each function returns a clock that tells how many are left.

A second that a reader has asked for is one on the wall. But an ordinary cell must not end as hung because other
programs take the processors, and no right answer may be refused for that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..live import tell
from ..system import load
from ..system.patience import FAIR_CEILING, Patience
from .asking import patience_with

if TYPE_CHECKING:
    from ..engines.processes import Processes

Left = Callable[[Mapping], float]  # called with what is still waited for, by rank
Deadline = Callable[["Processes", float], Left]
SOON = 0.1  # seconds: who is quicker does not need to know the load
STRETCHED = 1.5  # times a deadline on the clock: from there on its length wants a reason
LOOK = 1.0  # between two looks at the load, which take some milliseconds


def on_the_wall(processes: Processes, seconds: float) -> Left:
    """Count every second: for a deadline that the reader has given to this cell."""
    until = time.monotonic() + seconds
    return lambda pending: until - time.monotonic()


def less_what_others_take(processes: Processes, seconds: float) -> Left:
    """Count a second less the share of the processors that other programs took: for the deadline of the world.

    Ranks that hang take nothing, and others may take all; then the share counts that the ranks would have been given.
    """
    began = time.monotonic()
    since: load.Moment | None = None
    crowd = load.Crowd()
    left, looked = seconds, began

    def count(pending: Mapping) -> float:
        nonlocal since, left, looked
        now = time.monotonic()
        if now < began + SOON or now >= began + max(seconds, FAIR_CEILING):
            return began + (seconds if now < began + SOON else 0.0) - now
        if since is None:
            since = load.now()
        crowd.look()
        wall = began + seconds - now
        if wall > 0:  # nobody has to look at the load before the deadline could have come
            return wall
        if now >= looked + LOOK or left <= LOOK:
            until = load.now()
            could_have = max(1 - load.taken_by_others(since, until), crowd.share(processes.size))
            left, looked = seconds - (until.clock - began) * could_have, now
        return left

    return count


def while_ranks_could(processes: Processes, seconds: float) -> Left:
    """Count the seconds in which the ranks could work: for answers that a grader has called."""
    until = time.monotonic() + SOON
    patience: Patience | None = None

    def count(pending: Mapping) -> float:
        nonlocal patience
        if time.monotonic() < until:
            return seconds
        patience = patience or patience_with(processes, pending, max(seconds, FAIR_CEILING))
        return patience.left(pending, seconds - SOON)

    return count


def tell_if_stretched(seconds: float, took: float) -> None:
    """Tell whoever watches why a deadline came so late.

    Args:
        seconds: the deadline.
        took: seconds on the wall until it came.
    """
    if took >= STRETCHED * seconds + 1:
        tell(f"The machine is busy: {seconds:g} s for these ranks took {took:.0f} s on the clock.")
