"""Why ranks wait: who waits for whom, who never came, the likely cause and the fix.

Pure: reads what the ranks left behind and what their watchdogs told, and says the same on every run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..layout import name_ranks
from ..outcome import RankOutcome
from . import devices, making, mismatch
from .called import as_called
from .evidence import MORE_TIME, Case, Finding, doing, state_of, verb_of
from .waits import all_came, alone, awaiting, circle, missing, never_met, unmet


def find(outcomes: Sequence[RankOutcome], size: int = 0, cut: Sequence[tuple[int, str]] = ()) -> Finding | None:
    """Explain why ranks wait, or that they do not.

    Args:
        outcomes: all ranks that were asked, with what was ``seen``.
        size: ranks of the world.
        cut: number and name of each host whose cable is cut.

    Returns:
        None where no rank was freed.
    """
    case = Case(outcomes, size, cut)
    if not case.stuck:
        return None
    explanations = (
        *(_stopped, _silent, _going_on, _disagreement, _severed, never_met, circle, making.left, missing, alone),
        *(devices.queued, devices.at_work, all_came, awaiting, unmet, _busy),
    )
    finding = next(filter(None, (explain(case) for explain in explanations)))
    for entry in map(as_called, outcomes):
        said = doing(entry) if entry.state == "freed" else "finished the cell" if entry.state == "done" else ""
        finding.notes.setdefault(entry.rank, said)
    return finding


def _stopped(case: Case) -> Finding | None:
    stopped = [entry.rank for entry in case.stuck if state_of(entry).stopped]
    if not stopped:
        return None
    return Finding(
        f"The process of {name_ranks(stopped)} was stopped (SIGSTOP){_others(case, stopped)}.",
        "something outside of the notebook stopped it: a debugger, Ctrl-Z in a terminal, kill -STOP.",
        "nothing is to be done here: it was continued.",
        {rank: "was stopped" for rank in stopped},
    )


def _silent(case: Case) -> Finding | None:
    silent = [entry.rank for entry in case.stuck if entry.seen is None]
    if not silent:
        return None
    return Finding(
        f"{name_ranks(silent)} did not answer{_others(case, silent)}.",
        "compiled code that does not let Python run, or a rank on another computer.",
        "look at the longest call of the cell.",
    )


def _going_on(case: Case) -> Finding | None:
    """Ranks that exchange messages all the time: the one they wait for at this moment will come."""
    if not all(state_of(entry).goes_on or not state_of(entry).call for entry in case.stuck):
        return None
    if not any(state_of(entry).goes_on and state_of(entry).call for entry in case.stuck):
        return None
    ranks = [entry.rank for entry in case.stuck]
    return Finding(
        f"{name_ranks(ranks)} {verb_of(ranks, 'work')} on: messages come and go.",
        "an endless loop, or more work than the deadline allows.",
        MORE_TIME,
    )


def _disagreement(case: Case) -> Finding | None:
    seen = {entry.rank: entry.seen for entry in case.outcomes if entry.seen}
    return mismatch.unlike(seen) or mismatch.find(seen)


def _severed(case: Case) -> Finding | None:
    """Ranks that wait for messages while a cable is cut."""
    waiting = [entry.rank for entry in case.stuck if state_of(entry).call.startswith("torch.")]
    if not case.cut or not waiting:
        return None
    names = " and ".join(name for _, name in case.cut)
    return Finding(
        f"{name_ranks(waiting)} {verb_of(waiting, 'wait')} for messages, and the cable of {names} is cut.",
        "what is sent over a cut cable is lost; TCP sends it again and again, and gives up after minutes.",
        f"{' '.join(f'world.hosts[{number}].restore()' for number, _ in case.cut)} puts the cable back.",
    )


def _busy(case: Case) -> Finding:
    ranks = [entry.rank for entry in case.stuck]
    calls = {state_of(entry).call for entry in case.stuck}
    inside = f" in {calls.pop()}" if len(calls) == 1 and "" not in calls else ""
    return Finding(
        f"{name_ranks(ranks)} {'is' if len(ranks) == 1 else 'are'} still at work{inside}, and "
        f"{verb_of(ranks, 'wait')} for no other rank that torch knows of.",
        "an endless loop, more work than the deadline allows, or a wait for something that is not a rank: a lock, a "
        "file, a store.",
        MORE_TIME,
    )


def _others(case: Case, ranks: Sequence[int]) -> str:
    others = [entry.rank for entry in case.stuck if entry.rank not in ranks]
    return f", and {name_ranks(others)} waited" if others else ""
