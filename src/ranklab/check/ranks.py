"""Graders of the chapters *your-first-ranks* and *rank-local-rank-world-size*."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

from ..cells.trace import describe
from ..layout import Place, name_ranks, places
from ..world import current
from .grading import Raised, asked, on_ranks, safely
from .worlds import sizes

LENGTHS = (0, 1, 8, 10)
ROUNDS = 2
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
        shares = on_ranks(_call_with_places, answer, items)
        if shares is None:
            return
        for size in range(min(2, len(shares)), len(shares) + 1):
            if problem := _share_problem(items, [share[size] for share in shares[:size]]):
                print(f"Not yet. With {length} item{'s' * (length != 1)} on {size} ranks: {problem}")
                return
    print("Correct: every item has one owner, and no share is more than one item longer than another.")


def _share_problem(items: list, shares: list) -> str:
    if raised := [rank for rank, share in enumerate(shares) if isinstance(share, Raised)]:
        return f"{name_ranks(raised[:1])} raised {shares[raised[0]].words}"
    for rank, share in enumerate(shares):
        if not isinstance(share, list):
            return f"rank {rank} returned {type(share).__name__}, not a list."
    if strangers := [item for share in shares for item in share if not isinstance(item, int) or item not in items]:
        return f"{strangers[0]!r} is in a share but not among the items."
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


def sum_on_rank_zero(answer: Callable[[int], int | None]) -> None:
    """Grade a sum over all ranks that only rank 0 returns.

    Args:
        answer: ``total(value)`` runs on every rank, inside a process group, twice, with another value on each rank
            and in each round. It returns the sum as a number on rank 0 and None on the others. An answer that hangs
            is ended after five seconds.

    Exercise of the chapter *your-first-ranks*.
    """
    if not sizes():
        return
    # Importing torch and meeting take their time; the deadline is for the answer alone.
    if on_ranks(_make_group, deadline=None) is None:
        return
    for _ in range(ROUNDS):
        values = _draw_values(current().size)
        if (results := on_ranks(_call_in_group, answer, values)) is None:
            return
        if problem := _total_problem(results, values):
            print(f"Not yet. {problem}")
            return
    print("Correct: in two rounds rank 0 had the sum, the others had None, and nobody waited.")


def _draw_values(size: int) -> list[int]:
    """One value a rank, no two alike and none of them known before: an answer cannot be written down."""
    return random.sample(range(1, 1000), size)


def _total_problem(results: list, values: list[int]) -> str:
    total, expected = results[0], sum(values)
    alone = f"one process that adds {', '.join(map(str, values[:-1]))} and {values[-1]} gets {expected}."
    if total is None:
        return f"Rank 0 returned None; {alone}"
    if isinstance(total, bool) or not isinstance(total, (int, float)):
        mend = " item() takes the number out of it." if hasattr(total, "item") else ""
        return f"Rank 0 returned a {type(total).__name__}, not a number.{mend}"
    if total != expected:
        own = "its own value" if total == values[0] else str(total)
        return f"Rank 0 returned {own}; {alone}"
    if talkers := [rank for rank, result in enumerate(results) if rank and result is not None]:
        return f"{name_ranks(talkers)} should return None, but rank {talkers[0]} returned {results[talkers[0]]!r}."
    return ""


def draw_cluster(seed: int) -> list[int]:
    """Draw a small cluster with nodes of different sizes.

    Args:
        seed: the same seed draws the same cluster.

    Returns:
        Processes on each node: two or three nodes, four to six processes in all.

    Used in the chapter *rank-local-rank-world-size*.
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
    live = on_ranks(_own_place)
    if live is None:
        return
    for nodes, truths in [(world.nodes, live), *((nodes, places(nodes)) for nodes in ((1, 3), (2, 2, 2), (8, 8)))]:
        for truth in truths:
            if problem := _place_problem(answer, truth, list(nodes)):
                print(f"Not yet. With nodes={list(nodes)}, rank {truth.rank}: {problem}")
                return
    print(f"Correct: the {world.size} ranks that run say the same, and three other clusters agree.")


def _place_problem(answer: Callable, truth: Place, nodes: list[int]) -> str:
    given, problem = asked(answer, truth.rank, nodes)
    if problem:
        return problem
    if not isinstance(given, Mapping):
        return f"your answer is {given!r}, not a dictionary."
    for name in NUMBERS:
        if name not in given:
            return f"your answer has no {name!r}."
        if not isinstance(given[name], Number) or given[name] != getattr(truth, name):
            return f"{name} is {getattr(truth, name)}, your answer is {given[name]!r}."
    return ""


def device_index(answer: Callable[[int, list[list[int]]], int]) -> None:
    """Grade the choice of a GPU under six ways of launching on a node with eight GPUs.

    Args:
        answer: ``device_index(local_rank, seen)`` returns the index for ``torch.cuda.set_device``, or raises where
            the process has no GPU of its own. ``seen[i]`` lists the GPUs of the node that the process with local
            rank i can see, in the order of its ``CUDA_VISIBLE_DEVICES``.

    Exercise of the chapter *rank-local-rank-world-size*.
    """
    for case, seen, local_rank, wanted in CASES:
        if problem := _device_problem(answer, local_rank, [list(gpus) for gpus in seen], wanted):
            print(f"Not yet. {case}: local rank {local_rank} sees GPUs {list(seen[local_rank])}. {problem}")
            return
    print(f"Correct: in all {len(CASES)} cases a rank has a GPU of its own, or an error says that it has none.")


def _device_problem(answer: Callable, local_rank: int, seen: list[list[int]], wanted: int | None) -> str:
    visible = list(seen[local_rank])
    index, problem = asked(_index_or_refusal, answer, local_rank, seen)
    if isinstance(index, Raised):
        if wanted is None:
            return ""
        problem = f"your answer raised {index.words}"
    if problem:
        return problem[0].upper() + problem[1:]
    if wanted is None:
        return f"None is its own: the others see the same. Your answer is {index!r} instead of an error."
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(visible):
        return f"There is no index {index!r} in that list."
    if visible[index] != wanted:
        return f"Your answer is index {index}, GPU {visible[index]}, which belongs to another rank."
    return ""


def _index_or_refusal(answer: Callable, local_rank: int, seen: list[list[int]]) -> Any:
    """Return the answer, or the error that it raised on purpose; a misspelt name is none."""
    try:
        return answer(local_rank, seen)
    except NameError:
        raise
    except Exception as error:
        return Raised(describe(error))


# How the job is launched, what each process of the node sees, and the GPU that each process should take. Where there
# are more processes than GPUs, None marks those that have none; what the others do is left to the answer.
LAUNCHES: list[tuple[str, Sequence[Sequence[int]], Mapping[int, int | None]]] = [
    ("torchrun, eight processes", [range(8)] * 8, {rank: rank for rank in range(8)}),
    ("CUDA_VISIBLE_DEVICES=4,5 torchrun, two processes", [(4, 5)] * 2, {0: 4, 1: 5}),
    ("srun --gpus-per-task=1, eight tasks", [(gpu,) for gpu in range(8)], {rank: rank for rank in range(8)}),
    ("CUDA_VISIBLE_DEVICES=7,3 torchrun, two processes", [(7, 3)] * 2, {0: 7, 1: 3}),
    ("CUDA_VISIBLE_DEVICES=4 torchrun, two processes", [(4,)] * 2, {1: None}),
    ("CUDA_VISIBLE_DEVICES=4,5 torchrun, four processes", [(4, 5)] * 4, {2: None, 3: None}),
]
CASES = [(case, seen, rank, wanted) for case, seen, own in LAUNCHES for rank, wanted in own.items()]


# -- what runs on a rank -----------------------------------------------------------------------------------------


def _call_with_places(answer: Callable, items: list) -> dict[int, Any]:
    """Answer for this rank in every world that is large enough to have it."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return {size: safely(answer, list(items), rank, size) for size in range(rank + 1, world_size + 1)}


def _make_group() -> None:
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("gloo")


def _call_in_group(answer: Callable, values: list[int]) -> Any:
    return answer(values[int(os.environ["RANK"])])


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
