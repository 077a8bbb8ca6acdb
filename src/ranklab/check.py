"""Graders: they run a reader's answer on the reader's ranks and say what is wrong.

A grader compares with the one-process answer, prints one sentence and raises nothing, so that a notebook with an
unsolved exercise still runs to its end.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from .check_hosts import interface_for, wire_seconds
from .check_launch import node_commands, rank_of, who_am_i
from .grading import on_ranks as _on_ranks
from .layout import Place, name_ranks, places
from .trace import describe
from .world import current

__all__ = [
    "cluster_numbers",
    "device_index",
    "draw_cluster",
    "interface_for",
    "my_share",
    "node_commands",
    "rank_of",
    "sum_on_rank_zero",
    "who_am_i",
    "wire_seconds",
]
LENGTHS = (0, 1, 8, 10)
NUMBERS = ("node_rank", "local_rank", "local_world_size", "world_size", "nnodes")


def my_share(answer: Callable[[list, int, int], list]) -> None:
    """Grade the splitting of work: every item has one owner, shares differ by at most one item.

    Args:
        answer: ``my_share(items, rank, world_size)`` returns the items of one rank. It runs on every rank with
            lists of 0, 1, 8 and 10 items and every world size from 2 up to that of the running world.

    Exercise of the chapter *your-first-ranks*.
    """
    for length in LENGTHS:
        items = list(range(length))
        shares = _on_ranks(_call_with_places, answer, items)
        if shares is None:
            return
        for size in range(min(2, len(shares)), len(shares) + 1):
            if problem := _share_problem(items, [share[size] for share in shares[:size]]):
                print(f"Not yet. With {length} item{'s' * (length != 1)} on {size} ranks: {problem}")
                return
    print("Correct: every item has one owner, and no share is more than one item longer than another.")


def _share_problem(items: list, shares: list) -> str:
    for rank, share in enumerate(shares):
        if not isinstance(share, list):
            return f"rank {rank} returned {type(share).__name__}, not a list."
    if strangers := [item for share in shares for item in share if item not in items]:
        return f"{strangers[0]!r} is in a share but not among the items."
    owners = Counter(item for share in shares for item in share)
    if doubled := [item for item, count in owners.items() if count > 1]:
        who = [rank for rank, share in enumerate(shares) if doubled[0] in share]
        return f"item {doubled[0]} belongs to {name_ranks(who)}, it should belong to one rank."
    if lost := [item for item in items if item not in owners]:
        return f"nobody has {'item' if len(lost) == 1 else 'items'} {', '.join(map(str, lost))}."
    sizes = [len(share) for share in shares]
    if max(sizes) - min(sizes) > 1:
        return f"the shares have {sizes} items; the longest may be one longer than the shortest."
    return ""


def sum_on_rank_zero(answer: Callable[[int], int | None]) -> None:
    """Grade a sum over all ranks that only rank 0 returns.

    Args:
        answer: ``total(value)`` runs on every rank, inside a process group, with value = 10 ** rank. It returns
            the sum on rank 0 and None on the others. An answer that hangs is ended after five seconds.

    Exercise of the chapter *your-first-ranks*.
    """
    # Importing torch and meeting take their time; the deadline is for the answer alone.
    if _on_ranks(_make_group, deadline=None) is None or (results := _on_ranks(_call_in_group, answer)) is None:
        return
    expected = sum(10**rank for rank in range(len(results)))
    if results[0] != expected:
        print(f"Not yet. Rank 0 returned {results[0]!r}; one process that adds all values gets {expected}.")
    elif talkers := [rank for rank, result in enumerate(results) if rank and result is not None]:
        said = results[talkers[0]]
        print(f"Not yet. {name_ranks(talkers)} should return None, but rank {talkers[0]} returned {said!r}.")
    else:
        print(f"Correct: rank 0 has {expected}, the others have None, and nobody waits.")


def draw_cluster(seed: int) -> list[int]:
    """Draw a small cluster with nodes of different sizes.

    Args:
        seed: the same seed draws the same cluster.

    Returns:
        Processes on each node: two or three nodes, four to six processes in all.
    """
    chance = random.Random(seed)
    while True:
        nodes = [chance.randint(1, 3) for _ in range(chance.randint(2, 3))]
        if 4 <= sum(nodes) <= 6 and len(set(nodes)) > 1:
            return nodes


def cluster_numbers(answer: Callable[[int, list[int]], Mapping[str, int]]) -> None:
    """Grade the five numbers of a rank against what the running ranks say of themselves, then on other clusters.

    Args:
        answer: ``where(rank, nodes)`` returns a mapping with the keys node_rank, local_rank, local_world_size,
            world_size and nnodes, for a cluster with ``nodes[i]`` processes on node i. It runs in the notebook.

    Exercise of the chapter *rank-local-rank-world-size*.
    """
    world = current()
    live = _on_ranks(_own_place)
    if live is None:
        return
    for nodes, truths in [(world.nodes, live), *((nodes, places(nodes)) for nodes in ((1, 3), (2, 2, 2), (8, 8)))]:
        for truth in truths:
            if problem := _place_problem(answer, truth, list(nodes)):
                print(f"Not yet. With nodes={list(nodes)}, rank {truth.rank}: {problem}")
                return
    print(f"Correct: the {world.size} ranks that run say the same, and three other clusters agree.")


def _place_problem(answer: Callable, truth: Place, nodes: list[int]) -> str:
    try:
        given = answer(truth.rank, nodes)
    except Exception as error:
        return f"your answer raised {describe(error)}"
    if not isinstance(given, Mapping):
        return f"your answer is {given!r}, not a dictionary."
    for name in NUMBERS:
        if name not in given:
            return f"your answer has no {name!r}."
        if given[name] != getattr(truth, name):
            return f"{name} is {getattr(truth, name)}, your answer is {given[name]!r}."
    return ""


def device_index(answer: Callable[[int, list[int]], int]) -> None:
    """Grade the choice of a GPU under five ways of launching on a node with eight GPUs.

    Args:
        answer: ``device_index(local_rank, visible)`` returns the index for ``torch.cuda.set_device``, or raises where
            the process has no GPU of its own. ``visible`` lists the GPUs of the node that this process can see, as
            ``CUDA_VISIBLE_DEVICES`` does.

    Exercise of the chapter *rank-local-rank-world-size*.
    """
    for case, local_rank, visible, wanted in LAUNCHES:
        if problem := _device_problem(answer, local_rank, list(visible), wanted):
            print(f"Not yet. {case}: local rank {local_rank} sees cards {list(visible)}. {problem}")
            return
    print(f"Correct: in all {len(LAUNCHES)} cases a rank has a card of its own, or an error says that it has none.")


def _device_problem(answer: Callable, local_rank: int, visible: list[int], wanted: int | None) -> str:
    try:
        index = answer(local_rank, visible)
    except Exception as error:
        return "" if wanted is None else f"Your answer raised {describe(error)}"
    if wanted is None:
        return f"None of them is its own; your answer is {index!r} instead of an error."
    if not isinstance(index, int) or not 0 <= index < len(visible):
        return f"There is no index {index!r} in that list."
    if visible[index] != wanted:
        return f"Your answer is index {index}, card {visible[index]}, which belongs to another rank."
    return ""


# How the job is launched, the local rank, the cards it sees, the one that is its own (None: there is none).
LAUNCHES = [
    *[("torchrun, eight processes", rank, range(8), rank) for rank in range(8)],
    *[("CUDA_VISIBLE_DEVICES=4,5 torchrun, two processes", rank, (4, 5), 4 + rank) for rank in range(2)],
    *[("srun --gpus-per-task=1, eight tasks", rank, (rank,), rank) for rank in range(8)],
    *[("CUDA_VISIBLE_DEVICES=7,3 torchrun, two processes", rank, (7, 3), (7, 3)[rank]) for rank in range(2)],
    *[("CUDA_VISIBLE_DEVICES=4,5 torchrun, four processes", rank, (4, 5), None) for rank in (2, 3)],
]


# -- what runs on a rank, and how it comes back ------------------------------------------------------------------


def _call_with_places(answer: Callable, items: list) -> dict[int, Any]:
    """Answer for this rank in every world that is large enough to have it."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return {size: answer(list(items), rank, size) for size in range(rank + 1, world_size + 1)}


def _make_group() -> None:
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group()


def _call_in_group(answer: Callable) -> Any:
    import torch.distributed as dist

    return answer(10 ** dist.get_rank())


def _own_place() -> Place:
    read = {name: int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE")}
    return Place(
        rank=read["RANK"],
        local_rank=read["LOCAL_RANK"],
        node_rank=read["GROUP_RANK"],
        world_size=read["WORLD_SIZE"],
        local_world_size=int(os.environ["LOCAL_WORLD_SIZE"]),
        nnodes=int(os.environ["GROUP_WORLD_SIZE"]),
    )
