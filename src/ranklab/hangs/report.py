"""From what the ranks did to what the panel says: the cause first, its consequences after it.

Pure: the words of each fault stand in a module of their own, see :mod:`ranklab.hangs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..layout import name_ranks
from ..outcome import CellOutcome, RankOutcome
from ..state import RankState
from ..system.patience import LONGEST
from . import deaths, diagnosis, mismatch, partners, raised, torchs_log
from .evidence import doing, inside, shape, state_of

GROUPS_GONE = (
    "Process groups, and what was built on them (DDP, device meshes), are gone: dist.init_process_group "
    "makes a new one."
)
NO_RANK_LEFT = "The next cell starts all ranks again, without variables"
ALL_LOST = f"{NO_RANK_LEFT}; process groups are gone."
WRONG_NUMBERS = "The cell came to its end, but its numbers are not what they should be."


def summarise(
    outcomes: list[RankOutcome],
    reason: str,
    timeout: float,
    alive: Sequence[int],
    size: int,
    cell: str = "",
    cut: Sequence[tuple[int, str]] = (),
    what: str = "cell",
) -> CellOutcome:
    """Say what happened in a cell, or in a program that torchrun has started.

    Args:
        outcomes: every rank that was asked.
        reason: "finished", "trouble", "deadline" or "interrupted".
        timeout: the deadline, seconds.
        alive: the ranks whose processes run.
        size: number of ranks of the world.
        cell: its text, for the line in which a rank died.
        cut: number and name of each host whose cable is cut.
        what: what ran on the ranks, "cell" or "program".
    """
    result = CellOutcome(outcomes, timed_out=reason == "deadline", torchs_log=torchs_log.joined(outcomes))
    died = [entry for entry in outcomes if entry.state == "died"]
    found = diagnosis.find(outcomes, size, cut)
    left_groups = bool(died) or any(entry.state == "freed" for entry in outcomes) or partners.group_broken(outcomes)
    raised.mark_consequences(outcomes, died)
    errors = [entry for entry in outcomes if entry.state == "raised"]
    if died:
        result.headline = f"rank {died[0].rank} {deaths.how(died[0], cell)}"
        for entry in died:
            entry.note = deaths.how(entry, cell)
        result.cause, result.fix = deaths.why(died[0], outcomes, what)
    elif errors:
        result.headline, result.cause, result.fix = partners.explain(outcomes, found, what) or raised.explain(errors)
    elif found is not None:
        when = "You stopped the cell: " if reason == "interrupted" else f"After {timeout:g} s: "
        result.headline = when + inside(found.sentence)
        result.cause, result.fix = found.cause, _with_more_time(found.fix, timeout)
    elif reason == "interrupted":
        result.headline = f"You stopped {name_ranks([entry.rank for entry in outcomes])}."
    if found is not None:
        for entry in outcomes:
            entry.note = entry.note or found.notes.get(entry.rank, "")
    if result.headline and left_groups:
        result.advice = _advice(outcomes, [rank for rank in range(size) if rank not in alive], size)
        result.details = _details(outcomes)
    return result


def warn(outcome: CellOutcome, seen: dict[int, RankState]) -> None:
    """Say that a cell which ended well has mixed different collectives: its numbers are wrong.

    Args:
        outcome: of the cell; gets the warning.
        seen: groups and collectives of the cell, for each rank.
    """
    found = mismatch.find(seen)
    if found is not None:
        outcome.warning = f"{found.sentence} {WRONG_NUMBERS}"
        outcome.cause, outcome.fix = found.cause, found.fix


def running(
    outcomes: list[RankOutcome], seen: dict[int, RankState], still: list[int], seconds: int, timeout: float
) -> CellOutcome:
    """Say what the ranks are doing while a cell runs.

    Args:
        outcomes: what each rank has left behind so far; gets what the rank is doing.
        seen: what the watchdog of each rank that still works told.
        still: the ranks that still work.
        seconds: since the cell began.
        timeout: its deadline, seconds.
    """
    for entry in outcomes:
        if entry.rank in seen:
            entry.seen, entry.traceback = seen[entry.rank], seen[entry.rank].lines[-1:]
            entry.note = doing(entry)
    headline = f"running for {seconds} s on {name_ranks(still)}, deadline {timeout:g} s"
    if seconds > timeout:  # it does not count what other programs take
        headline += ": the machine is busy, so they get more"
    return CellOutcome(outcomes, headline=headline)


def all_lost(outcomes: list[RankOutcome], why: str) -> CellOutcome:
    """Say that no rank can be reached any more.

    Args:
        outcomes: what the ranks have left behind.
        why: one sentence.
    """
    return CellOutcome(outcomes, headline=why, advice=ALL_LOST)


def _with_more_time(fix: str, timeout: float) -> str:
    """Return the advice with a deadline that is longer than the one which has passed."""
    return fix.replace("--timeout 300", f"--timeout {min(max(300, math.ceil(2 * timeout)), int(LONGEST))}")


def _advice(outcomes: list[RankOutcome], dead: list[int], size: int) -> str:
    kept = "All ranks answer again and keep their variables."
    if dead:
        kept = f"The next cell starts {name_ranks(dead)} again, without variables; the others keep theirs."
    if len(dead) == size:
        kept = f"{NO_RANK_LEFT}."
    grouped = any(state_of(entry).groups for entry in outcomes)
    return f"{kept} {GROUPS_GONE}" if grouped or dead else kept


def _details(outcomes: list[RankOutcome]) -> list[tuple[list[int], str]]:
    """Return what the report folds away: the calls that ranks were in, and their latest collectives."""
    details: dict[str, list[int]] = {}
    for entry in outcomes:
        state = state_of(entry)
        lines = [f"in {' → '.join(state.stack)}"] if state.stack else []
        for called in state.collectives[-5:]:
            ends = "done" if called.done else "waits"
            ranks = name_ranks(state.groups.get(called.group, []))
            what = shape(called)
            lines.append(f"{called.number}. {called.name} of {ranks}{', ' + what if what else ''}: {ends}")
        if lines:
            details.setdefault("\n".join(lines), []).append(entry.rank)
    return [(ranks, text) for text, ranks in details.items()]
