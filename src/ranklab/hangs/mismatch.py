"""Collectives on which ranks do not agree: the n-th of a group has to be the same on all its ranks.

Pure: compares what :mod:`ranklab.rank.recorder` has told of each rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..layout import name_ranks
from ..state import Collective, RankState
from ..system.backends import named
from .evidence import Finding, shape

# Operations whose input has the same number of elements on every rank; gather, scatter and all_to_all may differ.
EQUAL = {"all_reduce", "broadcast", "reduce", "all_gather"}
DEFAULT = "0"  # torch's name of the group that init_process_group makes


def find(seen: Mapping[int, RankState]) -> Finding | None:
    """Explain the first collective that was not the same on all ranks, or return None where there is none.

    Args:
        seen: what the watchdog of each rank told.
    """
    together: dict[tuple[str, int], dict[int, Collective]] = {}
    for rank, state in seen.items():
        for called in state.collectives:
            together.setdefault((called.group, called.number), {})[rank] = called
    for (group, number), entries in sorted(together.items(), key=lambda item: item[0][1]):
        which = f"The ranks disagree about collective {number}{_of(group, seen)}"
        names = {called.name for called in entries.values()}
        if len(names) > 1:
            return Finding(
                f"{which}: {_each({rank: called.name for rank, called in entries.items()})}.",
                "the ranks take different ways through the program, or call the same operations in another order.",
                "the n-th collective of a group must be the same on all its ranks: compare the lines above.",
            )
        name = names.pop()
        if name in EQUAL and len({(_count(called), called.type) for called in entries.values()}) > 1:
            backend = named(next(iter(entries.values())).backend)
            return Finding(
                f"{which}, {name}: {_each({rank: shape(called) for rank, called in entries.items()})}.",
                f"{name} needs tensors of the same shape and type on every rank, and {backend.title} "
                f"{backend.unequal}.",
                "make the tensors equal in shape and type, for example by padding to the largest.",
            )
    return None


def unlike(seen: Mapping[int, RankState]) -> Finding | None:
    """Explain ranks that gave different lists to one call of ``new_group``, and wait in what came of it.

    torch takes their groups for one and the same, as both have its name.

    Args:
        seen: what the watchdog of each rank told.
    """
    waiting = {called.group for state in seen.values() for called in state.collectives if not called.done}
    for name in sorted(waiting - {DEFAULT}):
        members = {rank: tuple(state.groups[name]) for rank, state in seen.items() if state.groups.get(name)}
        if len(set(members.values())) > 1:
            told = _each({rank: f"a group of {name_ranks(ranks)}" for rank, ranks in members.items()})
            return Finding(
                f"The ranks made different groups in one call of new_group: {told}.",
                "each rank gave new_group a list of its own; torch matches such calls by their number.",
                "let every rank make every group, in the same order, those too that it does not belong to.",
            )
    return None


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
