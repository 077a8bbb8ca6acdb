"""Waiting for a cell: until all ranks are done, the first trouble, the reader's stop, or the deadline."""

from __future__ import annotations

import concurrent.futures
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..hangs.report import running
from ..live import Live
from ..system.patience import GRACE, LOOK, POLL
from .asking import glance, patience_with
from .deadlines import Deadline, on_the_wall
from .panel import Panel
from .presses import Presses
from .remains import printed

if TYPE_CHECKING:
    from ..engines.processes import Processes

SHOWN_LINES = 3  # of each rank's prints, while it works


def wait_for(
    processes: Processes,
    replies: Mapping,
    timeout: float,
    live: Live,
    presses: Presses,
    deadline: Deadline = on_the_wall,
) -> str:
    """Wait until all ranks are done, one has been in trouble for a moment, or nothing is to be waited for.

    Args:
        processes: of the world.
        replies: what is waited for, by rank.
        timeout: seconds until the cell counts as hung.
        live: shows where the ranks are.
        presses: of stop.
        deadline: which seconds count against the timeout.

    Returns:
        "finished"; "trouble", a rank has raised and others did not end in the time that they were given; "deadline";
        "interrupted" by the reader; or "lost", the ranks cannot be reached any more.
    """
    left = deadline(processes, timeout)
    next_look = time.monotonic() + LOOK
    grace = None
    while pending := {rank: reply for rank, reply in replies.items() if not reply.done()}:
        if time.monotonic() > next_look:
            next_look = time.monotonic() + LOOK
            if processes.lost(thorough=True):
                return "lost"
        if presses.take():
            return "interrupted"
        if grace is None and failed(replies):
            grace = patience_with(processes, pending)
        remaining = left(pending)
        if remaining <= 0:
            return "deadline" if grace is None else "trouble"
        given = grace.left(pending, GRACE) if grace is not None else math.inf
        if not given:
            return "trouble"
        until = min(POLL, remaining, given)
        concurrent.futures.wait(pending.values(), timeout=until, return_when=concurrent.futures.FIRST_EXCEPTION)
        _show(processes, replies, timeout, live)
    return "finished"


def failed(replies: Mapping) -> list[int]:
    """Return the ranks that have raised an error, or died."""
    # Not reply.successful(): it raises in the moment between a result and ipyparallel's own note that it is there
    # (_resolve_result and _finalize_result in asyncresult.py, 9.2).
    return [rank for rank, reply in replies.items() if reply.done() and reply.exception() is not None]


def _show(processes: Processes, replies: Mapping, timeout: float, live: Live) -> None:
    """Show what the ranks have printed so far, and where those are that still work."""
    still = [rank for rank, reply in replies.items() if not reply.done()]
    if not still or not live.due():
        return
    outcomes = [printed(rank, reply, SHOWN_LINES) for rank, reply in replies.items()]
    live.show(Panel(running(outcomes, glance(processes, still), still, live.seconds, timeout)).bundle())
