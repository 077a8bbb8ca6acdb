"""What is known of ranks that were freed, and what a report can conclude: the data of :mod:`ranklab.hangs.diagnosis`.

Pure: reads what the ranks left behind and what their watchdogs told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..outcome import RankOutcome
from . import mismatch

TAKES = {"torch.distributed.recv": "receives from", "torch.distributed.irecv": "receives from"}
GIVES = {"torch.distributed.send": "sends to", "torch.distributed.isend": "sends to"}


@dataclass
class Finding:
    """What a report says about ranks that wait.

    Attributes:
        sentence: who waits for whom.
        cause: the likely cause, one sentence.
        mend: what to do about it, one sentence.
        notes: a few words beside single ranks.
    """

    sentence: str
    cause: str = ""
    mend: str = ""
    notes: dict[int, str] = field(default_factory=dict)


@dataclass
class Case:
    """Ranks that did not come back by themselves, and all that is known around them.

    Attributes:
        outcomes: all ranks that were asked, with their ``place``.
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
    place = entry.place or {}
    waiting = pending(entry)
    if waiting:
        what = mismatch.shape(waiting)
        group = f" of group {waiting['group']}" if len(place["groups"]) > 1 else ""
        return f"waits in {waiting['name']}, collective {waiting['number']}{group}{', ' + what if what else ''}"
    if peer(entry) is not None:
        return f"{verb(entry)} rank {peer(entry)}"
    if place.get("call"):
        return f"in {place['call']}"
    return "at work in this line" if place.get("lines") else ""


def pending(entry: RankOutcome) -> dict | None:
    """Return the first collective that a rank has called and that has not come back."""
    place = entry.place or {}
    return next((called for called in place.get("collectives", ()) if not called["done"]), None)


def peer(entry: RankOutcome) -> int | None:
    """Return the rank that a rank sends to or receives from, None where it does neither."""
    place = entry.place or {}
    if place.get("call") not in (*TAKES, *GIVES):
        return None
    return next(iter(place.get("peers", {}).values()), None)


def verb(entry: RankOutcome) -> str:
    """Return what a rank does with its peer."""
    return {**TAKES, **GIVES}[entry.place["call"]]


def verb_of(ranks: Sequence[int], plural: str) -> str:
    """Return a verb as it follows :func:`ranklab.layout.name_ranks`."""
    return f"{plural}s" if len(ranks) == 1 else plural
