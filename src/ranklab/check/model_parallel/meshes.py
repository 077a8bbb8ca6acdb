"""Graders of the chapter *meshes*: the groups of a mesh, and the choice of one from numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

from ..grading import asked, entries
from ..verdict import Verdict, correct, grader, not_yet

SHAPES = ((2, 2), (2, 2, 2), (4,), (2, 4), (4, 2), (3, 4), (2, 3, 4), (1, 4), (4, 1, 2), (2, 2, 2, 2))
ROOMY = 4.0  # how many times the weights, gradients and optimizer state of a rank would fit
SLACK = 1e-9  # relative difference below which two meshes are equally fast

Groups = Callable[[Sequence[int], int, int], list[int]]


# -- mesh_group --------------------------------------------------------------------------------------------------


@grader
def mesh_group(answer: Groups) -> Verdict:
    """Grade the groups of a mesh: which ranks a rank talks to in a dimension.

    Args:
        answer: ``mesh_group(shape, dimension, rank)`` returns the ranks of the group of ``rank`` in a dimension of
            ``init_device_mesh(device_type, shape)``, in the order of their places, as ``get_process_group_ranks``
            does. Dimensions count from 0. It runs in the notebook.

    Exercise of the chapter *meshes*.
    """
    count = 0
    for shape in SHAPES:
        for dimension, rank in product(range(len(shape)), range(prod(shape))):
            where = f"mesh {_times(shape)}, dimension {dimension}, rank {rank}"
            got = entries(answer, where, shape, dimension, rank, what="a list of ranks")
            wanted = _group(shape, dimension, rank)
            count += 1
            if got != wanted:
                return not_yet(f"{where}: your group is {got}, expected {wanted}.{_slip(got, shape, dimension, rank)}")
    return correct(f"{count} groups of {len(SHAPES)} meshes are those that init_device_mesh makes.")


def _group(shape: Sequence[int], dimension: int, rank: int) -> list[int]:
    stride = prod(shape[dimension + 1 :])
    first = rank - rank // stride % shape[dimension] * stride
    return [first + place * stride for place in range(shape[dimension])]


def _slip(got: list, shape: Sequence[int], dimension: int, rank: int) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    size, ranks, before = shape[dimension], prod(shape), prod(shape[:dimension])
    first = _group(shape, dimension, rank)[0]
    if got and not all(isinstance(each, int) and 0 <= each < ranks for each in got):
        return f" The ranks are 0 to {ranks - 1}."
    if rank not in got:
        return f" Rank {rank} itself is missing."
    slips: list[tuple[list, str]] = [
        (list(range(rank - rank % size, rank - rank % size + size)), "Those are neighbours: only the last dimension."),
        (_group(shape[::-1], len(shape) - 1 - dimension, rank), "Ranks fill a mesh row by row: the last place first."),
        (list(range(first, first + size)), "A step in this dimension skips the ranks of all later dimensions."),
        (list(range(rank % before, ranks, before))[:size], "A step skips the ranks of the later dimensions."),
    ]
    if sorted(got) == _group(shape, dimension, rank):
        return " The ranks are right: put them in the order of their places."
    return next((f" {sentence}" for slip, sentence in slips if slip == got), "")


# -- choose_mesh -------------------------------------------------------------------------------------------------


@grader
def choose_mesh(answer: Callable) -> Verdict:
    """Grade the choice of a mesh (data, tensor): the fastest by the model of the chapter among those that fit.

    Args:
        answer: ``choose_mesh(nodes, gpus, weights, activation, calls, room, fast, slow)`` returns the sizes of "data"
            and "tensor", the last dimension, whose product is the number of ranks, ``gpus`` in each node. A rank
            holds ``16 * weights / tensor`` bytes, of ``room``. In a step "data" makes one ring ``all_reduce`` of
            ``4 * weights / tensor`` bytes, "tensor" makes ``calls`` of ``activation / data`` bytes; a group inside
            a node pays ``fast`` seconds per byte, another one ``slow``. It runs in the notebook.

    Exercise of the chapter *meshes*.
    """
    right, first = 0, ""
    given = []
    for case in CASES:
        pair, problem = asked(answer, *case)
        if not problem and not _is_pair(pair):
            problem = f"your answer is {pair!r}, a pair (data, tensor) of whole numbers is expected."
        if problem:
            return not_yet(f"{_told(case)}: {problem}")
        given.append(tuple(pair))
        problem = _wrong(case, *pair)
        right += not problem
        first = first or (problem and f"{_told(case)}: {problem}")
    if first:
        hint = next((f" {words}" for pick, words in SLIPS if given == [pick(*case) for case in CASES]), "")
        return not_yet(f"{right} of {len(CASES)} are right. The first that is not: {first}{hint}")
    return correct(f"{right} of {len(CASES)}: each fits, and none that fits is faster.")


def _wrong(case: tuple, data: int, tensor: int) -> str:
    """Say what is wrong with a mesh, "" where nothing is."""
    nodes, per_node, parameters, *_, room, _, _ = case
    if data * tensor != nodes * per_node:
        return f"you say {data} × {tensor}, which are {data * tensor} ranks."
    if 16 * parameters / tensor > room:
        return (
            f"you say {data} × {tensor}: a rank holds {16 * parameters / tensor / 1e9:g} GB "
            f"and has room for {room / 1e9:g}."
        )
    wanted = _best(*case)
    ratio = _seconds(case, data, tensor) / _seconds(case, *wanted)
    if ratio <= 1 + SLACK:
        return ""
    return f"you say {data} × {tensor}, which takes {ratio:.3g} times as long as {wanted[0]} × {wanted[1]}."


def _is_pair(pair: Any) -> bool:
    return (
        isinstance(pair, (tuple, list))
        and len(pair) == 2
        and all(isinstance(each, int) and not isinstance(each, bool) and each > 0 for each in pair)
    )


def _ring(ranks: int, size: float, beta: float) -> float:
    return 2 * (ranks - 1) / ranks * size * beta


def _flat(ranks: int, size: float, beta: float) -> float:
    return 2 * size * beta


def _flat_but_alone(ranks: int, size: float, beta: float) -> float:
    return 2 * size * beta if ranks > 1 else 0.0


def _seconds(
    case: tuple, data: int, tensor: int, crosses: bool = True, share: bool = True, ring: Callable = _ring
) -> float:
    """How long a mesh talks in a step; the last three say what somebody forgets to compute."""
    nodes, per_node, parameters, activation, calls, _, fast, slow = case
    gradients = 4 * parameters / (tensor if share else 1)
    inside = slow if crosses and per_node % tensor else fast
    rows = activation / (data if share else 1)
    return ring(data, gradients, slow if nodes > 1 else fast) + calls * ring(tensor, rows, inside)


def _meshes(case: tuple, room: float | None = None) -> list[tuple[int, int]]:
    """All meshes (data, tensor) that fit, the smallest "tensor" first."""
    nodes, per_node, parameters = case[:3]
    ranks, room = nodes * per_node, case[5] if room is None else room
    sizes = [size for size in range(1, ranks + 1) if ranks % size == 0 and 16 * parameters / size <= room]
    return [(ranks // size, size) for size in sizes]


def _best(*case: Any) -> tuple[int, int]:
    return min(_meshes(case), key=lambda mesh: _seconds(case, *mesh))


SLIPS: list[tuple[Callable, str]] = [
    (lambda *case: (case[0], case[1]), "You always fill the node with tensor; the numbers can say otherwise."),
    (lambda *case: _meshes(case)[0], "The smallest tensor that fits is not always the fastest."),
    (
        lambda *case: min(_meshes(case, room=float("inf")), key=lambda mesh: _seconds(case, *mesh)),
        "That is the fastest mesh; leave out first what does not fit.",
    ),
    (
        lambda *case: min(_meshes(case), key=lambda mesh: _seconds(case, mesh[0], mesh[1], crosses=False)),
        "A tensor group whose size does not divide that of a node leaves it, and pays slow.",
    ),
    (
        lambda *case: min(_meshes(case), key=lambda mesh: _seconds(case, mesh[0], mesh[1], share=False)),
        "Cut what is sent: gradients by tensor, activations by data.",
    ),
    (
        lambda *case: min(_meshes(case), key=lambda mesh: _seconds(case, mesh[0], mesh[1], ring=_flat)),
        "In a ring of N ranks each sends 2(N-1)/N of the bytes, and a single rank none.",
    ),
    (
        lambda *case: min(_meshes(case), key=lambda mesh: _seconds(case, mesh[0], mesh[1], ring=_flat_but_alone)),
        "In a ring of N ranks each sends 2(N-1)/N of the bytes.",
    ),
]


def _cases() -> list[tuple]:
    """Clusters and models for which each of the slips is wrong somewhere, and every best mesh is clearly so."""
    found = []
    for (nodes, per_node), parameters, tokens in product(
        ((2, 4), (1, 8), (3, 4), (4, 8)), (1e9, 8e9), (64, 4_096, 65_536)
    ):
        ranks = nodes * per_node
        need = 16 * parameters / ranks
        room = need * (ROOMY if tokens != 4_096 else ranks)  # where the model is no limit, one rank holds it
        found.append((nodes, per_node, parameters, 2.0 * tokens * 4096, 4 * 32, room, 1 / 450e9, 1 / 50e9))
    return found


CASES = _cases()


def _told(case: tuple) -> str:
    nodes, per_node, parameters, activation, *_ = case
    node = f"{nodes} node{'s' * (nodes > 1)} of {per_node}"
    return f"{node}, {parameters / 1e9:g} billion parameters, {activation / 1e6:.3g} MB an activation"


def _times(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))
