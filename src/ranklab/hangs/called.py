"""Collectives as the reader has called them, and who has called them. Pure."""

from __future__ import annotations

from dataclasses import replace

from ..outcome import RankOutcome
from ..state import Collective
from .evidence import pending, state_of

API = "torch.distributed."


def as_called(entry: RankOutcome) -> RankOutcome:
    """Return a rank's entry with the collective in which it waits named by the function that it called.

    gloo carries out a reduce_scatter with an all_reduce, and torch's recorder notes that one. Only the stack of a rank
    that waits tells the difference, so ranks must not be compared by this name.

    Args:
        entry: of a rank.
    """
    waiting, state = pending(entry), state_of(entry)
    name = next((call for call in state.stack if call.startswith(f"{API}reduce_scatter")), "").removeprefix(API)
    later = waiting and [
        each for each in state.collectives if each.group == waiting.group and each.number > waiting.number
    ]
    if waiting is None or waiting.name != "all_reduce" or not name or later:
        return entry
    renamed = [replace(each, name=name) if each is waiting else each for each in state.collectives]
    return replace(entry, seen=replace(state, collectives=renamed))


def has(entry: RankOutcome, waiting: Collective) -> bool:
    """Say whether a rank has called a collective in which another one waits."""
    return any(
        called.group == waiting.group and called.number >= waiting.number for called in state_of(entry).collectives
    )
