"""Collectives on which ranks do not agree: the n-th of a group has to be the same on all its ranks.

Pure: compares what :mod:`ranklab.rank.recorder` has told of each rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..layout import name_ranks

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


def find(recorded: Mapping[int, dict]) -> Mismatch | None:
    """Return the first collective on which ranks disagree, or None.

    Args:
        recorded: for each rank ``groups`` and ``collectives``, as its watchdog told them.
    """
    together: dict[tuple[str, int], dict[int, dict]] = {}
    for rank, told in recorded.items():
        for entry in told.get("collectives", ()):
            together.setdefault((entry["group"], entry["number"]), {})[rank] = entry
    for (group, number), entries in sorted(together.items(), key=lambda item: item[0][1]):
        which = f"collective {number}{_of(group, recorded)}"
        names = {entry["name"] for entry in entries.values()}
        if len(names) > 1:
            told = _each({rank: entry["name"] for rank, entry in entries.items()})
            return Mismatch(f"The ranks disagree about {which}: {told}.", operation=True)
        name = names.pop()
        if name in EQUAL and len({(_count(entry), entry["type"]) for entry in entries.values()}) > 1:
            told = _each({rank: shape(entry) for rank, entry in entries.items()})
            return Mismatch(f"The ranks disagree about {which}, {name}: {told}.", operation=False, name=name)
    return None


def shape(entry: dict) -> str:
    """Return what went into a collective: ``shape (3, 4) of float32``, ``one int64``; "" for a barrier."""
    if not entry["sizes"]:
        return ""
    if entry["sizes"] == [[]]:
        return f"one {entry['type']}"
    sizes = ", ".join(map(str, entry["sizes"][0])) + ("," if len(entry["sizes"][0]) == 1 else "")
    more = f" and {len(entry['sizes']) - 1} more" if len(entry["sizes"]) > 1 else ""
    return f"shape ({sizes}) of {entry['type']}{more}"


def _count(entry: dict) -> int:
    return sum(math.prod(sizes) for sizes in entry["sizes"])


def _of(group: str, recorded: Mapping[int, dict]) -> str:
    if group == DEFAULT:
        return ""
    ranks = next((told["groups"][group] for told in recorded.values() if group in told.get("groups", {})), [])
    return f" of the group of {name_ranks(ranks)}" if ranks else ""


def _each(said: dict[int, str]) -> str:
    groups: dict[str, list[int]] = {}
    for rank, text in sorted(said.items()):
        groups.setdefault(text, []).append(rank)
    return ", ".join(f"{text} on {name_ranks(ranks)}" for text, ranks in groups.items())
