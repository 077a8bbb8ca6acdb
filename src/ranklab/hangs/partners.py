"""Ranks whose error only says that another rank is not there any more, where no rank died or raised another. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..layout import name_ranks
from ..outcome import RankOutcome
from ..system.backends import Hint, lost_partner
from .evidence import Finding, inside, pending, state_of

HINTS = (
    Hint(
        "Timed out waiting",
        "it waited for another rank for as long as the timeout of the call or of its group allows.",
        "let every rank make this call; or give init_process_group, or the call, a longer timeout=.",
    ),
    Hint(
        "Application timeout caused pair closure",
        "an earlier call of this group timed out, and its connections were closed then.",
        "see which rank did not make that earlier call: the first `Timed out waiting` says where the others waited.",
    ),
    Hint(
        "Connection closed by peer [",
        "another rank ended, left the group (dist.destroy_process_group) or gave up waiting, while this one waited for "
        "it.",
        "see what the other ranks did last: each has to make the same calls, and equally many.",
    ),
)
# What backends raise: a download of the reader's own may lose its connection, too, and says so in another type.
BACKENDS_ERROR = re.compile(r"(?:torch\.distributed\.)?(?:RuntimeError|Dist\w+Error):")


def lost(entry: RankOutcome, overdue: bool = False) -> bool:
    """Say whether the error of a rank only means that another rank has gone.

    Args:
        entry: of the rank.
        overdue: count a rank that has waited in vain for the whole timeout, too.
    """
    return entry.state == "raised" and bool(BACKENDS_ERROR.match(entry.error)) and lost_partner(entry.error, overdue)


def group_broken(outcomes: Sequence[RankOutcome]) -> bool:
    """Say whether a process group is of no use any more: a backend whose connection has ended makes no new one."""
    return any(lost(entry, overdue=True) and state_of(entry).groups for entry in outcomes)


def explain(outcomes: Sequence[RankOutcome], found: Finding | None, what: str = "cell") -> tuple[str, str, str] | None:
    """Return headline, cause and fix where all that ranks have raised is the loss of others.

    Args:
        outcomes: of all ranks; one that has left gets a note.
        found: why other ranks wait that had to be freed.
        what: what ran on the ranks, "cell" or "program".

    Returns:
        None where another error is the cause, or nobody knows who has gone.
    """
    if not all(lost(entry, overdue=True) for entry in outcomes if entry.state == "raised"):
        return None
    # Whether a rank was told of it before it was freed is a matter of microseconds.
    waiting = [entry for entry in outcomes if entry.state in ("raised", "lost") or _waits(entry)]
    gone = _ended(outcomes) if what == "program" else _left(outcomes, waiting)
    if gone:
        return _of_gone(name_ranks([entry.rank for entry in waiting]), gone, what)
    if found is not None and any(map(_waits, outcomes)):
        # It was the group's timeout that has passed, and not the cell's.
        return inside(found.sentence), found.cause, HINTS[0].fix if "--timeout" in found.fix else found.fix
    return None


def _of_gone(waiting: str, gone: Sequence[RankOutcome], what: str) -> tuple[str, str, str]:
    who = name_ranks([entry.rank for entry in gone])
    for entry in gone:
        entry.note = "ended without an error" if what == "program" else "finished the cell: left the process group"
    if what == "program":
        return (
            f"{waiting} waited for {who}, which had ended without an error.",
            f"{who} called fewer collectives: a shorter loop or data loader, an early exit, or a branch that left the "
            "call out.",
            "give every rank equally many steps, for example with drop_last or DDP's join(), and let none end early.",
        )
    return (
        f"{waiting} waited for {who}, which had left the process group.",
        f"dist.destroy_process_group() on {who} closed the connections that the others still needed.",
        "make the same calls on every rank, and let all leave the group after the last of them.",
    )


def _ended(outcomes: Sequence[RankOutcome]) -> list[RankOutcome]:
    """Return the ranks of a program that came to its end while another lost its connection to them."""
    return [entry for entry in outcomes if entry.state == "done"] if any(map(lost, outcomes)) else []


def _left(outcomes: Sequence[RankOutcome], waiting: Sequence[RankOutcome]) -> list[RankOutcome]:
    """Return the ranks that are in no group any more, and on which others still count."""
    members = {rank for entry in waiting for ranks in state_of(entry).groups.values() for rank in ranks}
    done = [entry for entry in outcomes if entry.state == "done" and entry.rank in members]
    return [entry for entry in done if entry.seen is not None and not entry.seen.groups]


def _waits(entry: RankOutcome) -> bool:
    return entry.state == "freed" and pending(entry) is not None
