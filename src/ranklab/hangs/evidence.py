"""What is known of ranks that were freed, and what a report can conclude: the data of :mod:`ranklab.hangs.diagnosis`.

Pure: reads what the ranks left behind and what their watchdogs told.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field

from ..outcome import RankOutcome
from ..state import RECEIVES, SENDS, Collective, RankState

MORE_TIME = "%%px --timeout 300 gives one cell more seconds."
TAKES = dict.fromkeys(RECEIVES, "receives from")
GIVES = dict.fromkeys(SENDS, "sends to")


@dataclass
class Finding:
    """What a report says about ranks that wait.

    Attributes:
        sentence: who waits for whom.
        cause: the likely cause, one sentence.
        fix: what to do about it, one sentence.
        notes: a few words beside single ranks.
    """

    sentence: str
    cause: str = ""
    fix: str = ""
    notes: dict[int, str] = field(default_factory=dict)


@dataclass
class Case:
    """Ranks that did not come back by themselves, and all that is known around them.

    Attributes:
        outcomes: all ranks that were asked, with what was ``seen``.
        size: ranks of the world.
        cut: number and name of each host whose cable is cut.
    """

    outcomes: Sequence[RankOutcome]
    size: int = 0
    cut: Sequence[tuple[int, str]] = ()

    @property
    def stuck(self) -> list[RankOutcome]:
        """The ranks that had to be freed."""
        return [entry for entry in self.outcomes if entry.state == "freed"]

    @property
    def outside(self) -> list[int]:
        """The ranks to which the cell was not sent."""
        asked = {entry.rank for entry in self.outcomes}
        return [rank for rank in range(self.size) if rank not in asked]


def doing(entry: RankOutcome) -> str:
    """Say in a few words what a rank was doing when it was freed."""
    state, waiting = state_of(entry), pending(entry)
    if waiting:
        what = shape(waiting)
        group = f" of group {waiting.group}" if len(state.groups) > 1 else ""
        # A call that came back early stands in another line than the one that waits for it.
        called = f", called in {waiting.lines[-1]}" if waiting.lines and waiting.lines != state.lines else ""
        return f"waits in {waiting.name}, collective {waiting.number}{group}{', ' + what if what else ''}{called}"
    if peer(entry) is not None:
        return f"{verb(entry)} rank {peer(entry)}"
    if works_on_device(entry):
        return "has run all lines, and waits for its GPU"
    if state.call:
        return f"in {state.call}"
    return "at work in this line" if state.lines else ""


def shape(called: Collective) -> str:
    """Return what went into a collective: ``shape (3, 4) of float32``, ``one int64``; "" for a barrier."""
    if not called.sizes:
        return ""
    if called.sizes == [[]]:
        return f"one {called.type}"
    sizes = ", ".join(map(str, called.sizes[0])) + ("," if len(called.sizes[0]) == 1 else "")
    more = f" and {len(called.sizes) - 1} more" if len(called.sizes) > 1 else ""
    return f"shape ({sizes}) of {called.type}{more}"


def state_of(entry: RankOutcome) -> RankState:
    """Return what a rank's watchdog told, an empty state where it told nothing."""
    return entry.seen or RankState()


def pending(entry: RankOutcome) -> Collective | None:
    """Return the first collective that a rank has called and that has not come back."""
    return next((called for called in state_of(entry).collectives if not called.done), None)


def peer(entry: RankOutcome) -> int | None:
    """Return the rank that a rank sends to or receives from, None where it does neither."""
    state = state_of(entry)
    return next(iter(state.peers.values()), None) if state.call in (*TAKES, *GIVES) else None


def works_on_device(entry: RankOutcome) -> bool:
    """Say whether a rank only waits for its device at the end of the cell, and not for another rank there."""
    return state_of(entry).draining and pending(entry) is None and peer(entry) is None


def verb(entry: RankOutcome) -> str:
    """Return what a rank does with its peer."""
    return {**TAKES, **GIVES}[state_of(entry).call]


def inside(sentence: str) -> str:
    """Return a sentence as it stands behind a colon."""
    return sentence.replace("The ", "the ", 1) if sentence.startswith("The ") else sentence


def verb_of(ranks: Sized, plural: str) -> str:
    """Return a verb as it follows :func:`ranklab.layout.name_ranks`."""
    return f"{plural}s" if len(ranks) == 1 else plural
