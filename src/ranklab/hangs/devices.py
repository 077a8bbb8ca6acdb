"""Ranks whose GPU has not done what the cell gave to it, though nobody skipped a call.

Each explanation returns None where it is not the case, see :func:`ranklab.hangs.diagnosis.find`. Pure.
"""

from __future__ import annotations

from ..layout import name_ranks
from .evidence import MORE_TIME, Case, Finding, pending, state_of, verb_of, works_on_device


def queued(case: Case) -> Finding | None:
    """Ranks that wait in a collective which all have called, and which came back to all of them before it was done."""
    waiting = {
        entry.rank: called
        for entry in case.stuck
        if (called := pending(entry)) and (called.lines or state_of(entry).draining)
    }
    if not waiting:
        return None
    name = next(iter(waiting.values())).name
    return Finding(
        f"{name_ranks(list(waiting))} {verb_of(waiting, 'wait')} in {name}, which every rank of the group has called.",
        "a call on a GPU only enters a queue; on one of the ranks what stands before it in the queue takes longer than "
        "the deadline allows.",
        MORE_TIME,
    )


def at_work(case: Case) -> Finding | None:
    """Ranks that have run all lines of the cell, and whose GPU still works."""
    ranks = [entry.rank for entry in case.stuck if works_on_device(entry)]
    if not ranks:
        return None
    have, their = ("has", "its") if len(ranks) == 1 else ("have", "their")
    return Finding(
        f"{name_ranks(ranks)} {have} run all lines of the cell, and {their} work on the GPU has not ended.",
        "a kernel without end, or more work than the deadline allows: a call on a GPU comes back before it is done.",
        MORE_TIME,
    )
