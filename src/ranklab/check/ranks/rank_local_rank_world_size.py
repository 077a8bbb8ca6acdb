"""Graders of the chapter *rank-local-rank-world-size*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from numbers import Number
from typing import Any

from ...layout import Place, places
from ...rank.trace import describe
from ...world import current
from ..grading import PREPARING, Raised, asked, on_ranks
from ..verdict import Verdict, correct, grader, not_yet, offered

ROUNDS = 2
NUMBERS = ("node_rank", "local_rank", "local_world_size", "world_size", "nnodes")


@offered
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


@grader
def cluster_numbers(answer: Callable[[int, list[int]], Mapping[str, int]]) -> Verdict:
    """Grade the five numbers of a rank against what the running ranks say of themselves, then on other clusters.

    Args:
        answer: ``where(rank, nodes)`` returns a mapping with the keys node_rank, local_rank, local_world_size,
            world_size and nnodes, for a cluster with ``nodes[i]`` processes on node i. It runs in the notebook.

    Exercise of the chapter *rank-local-rank-world-size*.
    """
    world = current()
    live = on_ranks(_own_place, patience=PREPARING)
    for nodes, truths in [(world.nodes, live), *((nodes, places(nodes)) for nodes in ((1, 3), (2, 2, 1), (8, 8)))]:
        for truth in truths:
            if problem := _place_problem(answer, truth, list(nodes)):
                return not_yet(f"With nodes={list(nodes)}, rank {truth.rank}: {problem}")
    return correct(f"the {world.size} ranks that run say the same, and three other clusters agree.")


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


@grader
def device_index(answer: Callable[[int, list[list[int]]], int]) -> Verdict:
    """Grade the choice of a GPU under seven ways of launching on a node with eight GPUs.

    Args:
        answer: ``device_index(local_rank, seen)`` returns the index for ``torch.cuda.set_device``, or raises where
            the process has no GPU of its own. ``seen[i]`` lists the GPUs of the node that the process with local
            rank i can see, in the order of its ``CUDA_VISIBLE_DEVICES``.

    Exercise of the chapter *rank-local-rank-world-size*.
    """
    for case, seen, local_rank, wanted in CASES:
        if problem := _device_problem(answer, local_rank, [list(gpus) for gpus in seen], wanted):
            return not_yet(f"{case}: local rank {local_rank} sees GPUs {list(seen[local_rank])}. {problem}")
    return correct(f"in all {len(CASES)} cases a rank has a GPU of its own, or an error says that it has none.")


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
    except (Exception, SystemExit) as error:
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
    ("srun, tasks dealt to two sockets in turn", [(0, 1), (2, 3)] * 2, {0: 0, 1: 2, 2: 1, 3: 3}),
]
CASES = [(case, seen, rank, wanted) for case, seen, own in LAUNCHES for rank, wanted in own.items()]


# -- what runs on a rank -----------------------------------------------------------------------------------------


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
