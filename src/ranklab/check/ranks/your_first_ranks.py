"""Graders of the chapter *your-first-ranks*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from ...layout import name_ranks
from ...world import current
from ..grading import PREPARING, Raised, on_ranks, safely
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import sizes

LENGTHS = (0, 1, 8, 10, 7, 9)
WORDS = ("spoon", "fork", "knife", "plate", "bowl", "cup", "glass")  # no item is its own place in the list
ROUNDS = 2


@grader
def my_share(answer: Callable[[list, int, int], list]) -> Verdict:
    """Grade the splitting of work: every item has one owner, shares differ by at most one item.

    Args:
        answer: ``my_share(items, rank, world_size)`` returns the items of one rank. It runs on every rank with
            lists of 0 to 10 items and every world size from 2 up to that of the running world.

    Exercise of the chapter *your-first-ranks*.
    """
    lists: list[list] = [*(list(range(length)) for length in LENGTHS), list(WORDS)]
    found = on_ranks(_call_with_places, answer, lists)
    for number, items in enumerate(lists):
        for size in range(min(2, len(found)), len(found) + 1):
            if problem := _share_problem(items, [places[number, size] for places in found[:size]]):
                told = f"{len(items)} item{'s' * (len(items) != 1)}"
                told += f" ({items[0]}, {items[1]}, …)" if items == list(WORDS) else ""
                return not_yet(f"With {told} on {size} ranks: {problem}")
    return correct("every item has one owner, and no share is more than one item longer than another.")


def _share_problem(items: list, shares: list) -> str:
    if raised := [rank for rank, share in enumerate(shares) if isinstance(share, Raised)]:
        return f"{name_ranks(raised[:1])} raised {shares[raised[0]].words}"
    for rank, share in enumerate(shares):
        if not isinstance(share, list):
            return f"rank {rank} returned {type(share).__name__}, not a list."
    if strangers := [item for share in shares for item in share if type(item) not in (int, str) or item not in items]:
        place = " It is the place of one: return the item." if items == list(WORDS) and strangers[0] == 0 else ""
        return f"{strangers[0]!r} is in a share but not among the items.{place}"
    owners = Counter(item for share in shares for item in share)
    if doubled := [item for item, count in owners.items() if count > 1]:
        who = [rank for rank, share in enumerate(shares) if doubled[0] in share]
        if len(who) == 1:
            return f"rank {who[0]} has item {doubled[0]} {owners[doubled[0]]} times."
        return f"item {doubled[0]} belongs to {name_ranks(who)}, it should belong to one rank."
    if lost := [item for item in items if item not in owners]:
        return f"nobody has {'item' if len(lost) == 1 else 'items'} {', '.join(map(str, lost))}."
    sizes = [len(share) for share in shares]
    if max(sizes) - min(sizes) > 1:
        return f"the shares have {sizes} items; the longest may be one longer than the shortest."
    return ""


@grader
def sum_on_rank_zero(answer: Callable[[int], int | None]) -> Verdict:
    """Grade a sum over all ranks that only rank 0 returns.

    Args:
        answer: ``total(value)`` runs on every rank, inside a process group, twice, with another value on each rank
            and in each round. It returns the sum as a number on rank 0 and None on the others. An answer that hangs
            is ended after five seconds that it could have used.

    Exercise of the chapter *your-first-ranks*.
    """
    sizes()
    # Importing torch and meeting take their time; the deadline is for the answer alone.
    on_ranks(_make_group, patience=PREPARING)
    for _ in range(ROUNDS):
        values = _draw_values(current().size)
        results = on_ranks(_call_in_group, answer, values)
        if problem := _total_problem(results, values):
            return not_yet(problem)
    return correct("in two rounds rank 0 had the sum, the others had None, and nobody waited.")


def _draw_values(size: int) -> list[int]:
    """One value a rank, no two alike and none of them known before: an answer cannot be written down."""
    return random.sample(range(1, 1000), size)


def _total_problem(results: list, values: list[int]) -> str:
    total, expected = results[0], sum(values)
    alone = f"one process that adds {', '.join(map(str, values[:-1]))} and {values[-1]} gets {expected}."
    if total is None:
        return f"Rank 0 returned None; {alone}"
    if isinstance(total, bool) or not isinstance(total, (int, float)):
        fix = " item() takes the number out of it." if hasattr(total, "item") else ""
        return f"Rank 0 returned a {type(total).__name__}, not a number.{fix}"
    if total != expected:
        own = "its own value" if total == values[0] else str(total)
        return f"Rank 0 returned {own}; {alone}"
    if talkers := [rank for rank, result in enumerate(results) if rank and result is not None]:
        return f"{name_ranks(talkers)} should return None, but rank {talkers[0]} returned {results[talkers[0]]!r}."
    return ""


# -- what runs on a rank -----------------------------------------------------------------------------------------


def _call_with_places(answer: Callable, lists: list[list]) -> dict[tuple[int, int], Any]:
    """Answer for this rank, for each list by its number, in every world that is large enough to have the rank."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return {
        (number, size): safely(answer, list(items), rank, size)
        for number, items in enumerate(lists)
        for size in range(rank + 1, world_size + 1)
    }


def _make_group() -> None:
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("gloo")


def _call_in_group(answer: Callable, values: list[int]) -> Any:
    return answer(values[int(os.environ["RANK"])])
