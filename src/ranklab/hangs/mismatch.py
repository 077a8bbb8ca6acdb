"""Collectives on which ranks do not agree: the n-th of a group has to be the same on all its ranks.

Pure: compares what :mod:`ranklab.rank.recorder` has told of each rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..layout import name_ranks
from ..state import Collective, RankState

# Operations whose input has the same number of elements on every rank; gather, scatter and all_to_all may differ.
EQUAL = {"all_reduce", "broadcast", "reduce", "all_gather"}
DEFAULT = "0"  # torch's name of the group that init_process_group makes


@dataclass(frozen=True)
class Mismatch:
    """One collective that was not the same everywhere.

    Attributes:
        sentence: what differs, rank by rank.
        operation: whether the operations differ; else shape or type of one operation.
        name: the operation, "" where they differ.
    """

    sentence: str
    operation: bool
    name: str = ""


def find(seen: Mapping[int, RankState]) -> Mismatch | None:
    """Return the first collective on which ranks disagree, or None.

    Args:
        seen: what the watchdog of each rank told.
    """
    together: dict[tuple[str, int], dict[int, Collective]] = {}
    for rank, state in seen.items():
        for called in state.collectives:
            together.setdefault((called.group, called.number), {})[rank] = called
    for (group, number), entries in sorted(together.items(), key=lambda item: item[0][1]):
        which = f"collective {number}{_of(group, seen)}"
        names = {called.name for called in entries.values()}
        if len(names) > 1:
            told = _each({rank: called.name for rank, called in entries.items()})
            return Mismatch(f"The ranks disagree about {which}: {told}.", operation=True)
        name = names.pop()
        if name in EQUAL and len({(_count(called), called.type) for called in entries.values()}) > 1:
            told = _each({rank: shape(called) for rank, called in entries.items()})
            return Mismatch(f"The ranks disagree about {which}, {name}: {told}.", operation=False, name=name)
    return None


def shape(called: Collective) -> str:
    """Return what went into a collective: ``shape (3, 4) of float32``, ``one int64``; "" for a barrier."""
    if not called.sizes:
        return ""
    if called.sizes == [[]]:
        return f"one {called.type}"
    sizes = ", ".join(map(str, called.sizes[0])) + ("," if len(called.sizes[0]) == 1 else "")
    more = f" and {len(called.sizes) - 1} more" if len(called.sizes) > 1 else ""
    return f"shape ({sizes}) of {called.type}{more}"


def _count(called: Collective) -> int:
    return sum(math.prod(sizes) for sizes in called.sizes)


def _of(group: str, seen: Mapping[int, RankState]) -> str:
    if group == DEFAULT:
        return ""
    ranks = next((state.groups[group] for state in seen.values() if group in state.groups), [])
    return f" of the group of {name_ranks(ranks)}" if ranks else ""


def _each(said: dict[int, str]) -> str:
    groups: dict[str, list[int]] = {}
    for rank, text in sorted(said.items()):
        groups.setdefault(text, []).append(rank)
    return ", ".join(f"{text} on {name_ranks(ranks)}" for text, ranks in groups.items())
