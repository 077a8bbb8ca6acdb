"""Asking ranks that may be stuck: their watchdogs answer, where they are let.

Everything that looks into a watchdog's answer on the notebook's side stands here.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..state import Answer, Pulse, RankState
from ..system.patience import ANSWER, CEILING, FIRST_ANSWER, LIVE_ANSWER, PULSE, Patience

if TYPE_CHECKING:
    from ..engines.processes import Processes

WOKEN = 3  # a rank that waits for ever is woken once or twice, for reasons of the system's
CARRIED = 4096  # bytes; TCP alone says less on a cable in a tenth of a second


def patience_with(processes: Processes, ranks: Iterable[int], ceiling: float = CEILING) -> Patience:
    """Return a clock for waiting for what these ranks send to the notebook."""
    return Patience({rank: processes.pid(rank) for rank in ranks}, processes.helpers(), ceiling)


def ask(processes: Processes, rank: int, question: str) -> Answer | None:
    """Return what the watchdog of a rank says; None where it had the time to answer and did not.

    Args:
        processes: of the world.
        rank: who is asked.
        question: see :data:`ranklab.state.QUESTIONS`.
    """
    patience = None

    def more() -> float:
        nonlocal patience
        patience = patience or Patience({rank: processes.pid(rank)})
        return patience.left([rank], ANSWER - FIRST_ANSWER)

    return processes.ask(rank, question, FIRST_ANSWER, more)


def ask_all(processes: Processes, ranks: Iterable[int], question: str = "where") -> dict[int, Any]:
    """Return what the watchdogs of these ranks say, all asked at once; without the ranks that give no answer."""
    return _at_once(ranks, lambda rank: ask(processes, rank, question))


def glance(processes: Processes, ranks: Iterable[int]) -> dict[int, RankState]:
    """Return where these ranks are, of those that answer at once."""
    return _at_once(ranks, lambda rank: processes.ask(rank, "where", LIVE_ANSWER))


def _at_once(ranks: Iterable[int], asked: Callable[[int], Any]) -> dict[int, Any]:
    ranks = list(ranks)
    if not ranks:
        return {}
    with concurrent.futures.ThreadPoolExecutor(len(ranks)) as threads:
        answers = zip(ranks, threads.map(asked, ranks), strict=True)
    return {rank: answer for rank, answer in answers if answer}


def mark_progress(processes: Processes, seen: Mapping[int, RankState]) -> None:
    """Tell ranks that wait for ever from those that exchange messages all the time.

    Args:
        processes: of the world.
        seen: what each stuck rank's watchdog has told; of those that can be told apart it then knows ``goes_on``,
            ``sends`` and ``computes``.
    """
    waiting = {rank: state for rank, state in seen.items() if state.pulse}
    if not waiting:
        return
    patience_with(processes, waiting).pause(PULSE)
    for rank, pulse in ask_all(processes, waiting, "pulse").items():
        if isinstance(pulse, Pulse):  # it may have been stopped meanwhile
            state = waiting[rank]
            before = state.pulse or Pulse()
            called, woken, worked, carried = (now - then for now, then in zip(pulse, before, strict=True))
            state.goes_on = called > 0 or (bool(state.peers) and woken >= WOKEN)
            state.sends = carried > CARRIED
            state.computes = worked > PULSE * 1e9 / 2
