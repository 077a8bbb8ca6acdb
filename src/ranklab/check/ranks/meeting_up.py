"""Graders of the chapter *meeting-up*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock
from urllib.parse import urlsplit

from ...layout import places
from ...rank import smaller
from ...rank.meeting import count_anew
from ...rank.trace import describe
from ...system.ports import reserve_port
from ...world import current
from ..grading import PREPARING, asked, on_ranks
from ..verdict import NotYet, Verdict, correct, grader, not_yet
from ..worlds import rejoin

if TYPE_CHECKING:
    import socket

PATIENCE = timedelta(seconds=30)  # of a meeting that the answer's arguments make, on the clock: a busy machine is slow
NEAR = 1000  # a port that follows MASTER_PORT
ELSEWHERE = {"MASTER_ADDR": "computer1", "MASTER_PORT": "23456"}  # a place where nobody meets
CLUSTERS = ((2, 2), (1, 3), (2, 3, 1), (1, 1, 1))
# How the program was started, and whether all ranks shall meet; otherwise each is alone.
SITUATIONS = (
    ("Under torchrun", True),
    ("With plain python", False),
    ("With plain python, WORLD_SIZE=1 in the shell", False),
    ("With plain python, WORLD_SIZE=4 left in the shell", False),
    ("Under srun, MASTER_ADDR and MASTER_PORT exported", True),
    ("Under torchrun, which srun started once per node", True),
    ("With plain python in a shell of salloc", False),
)
LAUNCHERS = ("SLURM_", "RANK", "LOCAL_", "WORLD_SIZE", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_")
_held: socket.socket | None = None  # on rank 0: the port where ranks are told to meet, until they have met


@grader
def how_to_meet(answer: Callable[[Mapping[str, str]], Mapping[str, Any]]) -> Verdict:
    """Grade the arguments of ``init_process_group`` that a program finds in its environment, by meeting with them.

    Args:
        answer: ``how_to_meet(environ)`` returns a dictionary with ``rank`` and ``world_size`` as whole numbers and
            ``init_method`` (or ``store``). It runs on every rank, in seven situations; where nobody has launched the
            program, it is rank 0 of 1 and must not need anybody else.

    Exercise of the chapter *meeting-up*.
    """
    opened = on_ranks(smaller.open_store, patience=PREPARING)
    try:
        on_ranks(_leave, patience=PREPARING)
        _meet_everywhere(answer)
        return correct(
            f"in {len(SITUATIONS)} situations the ranks met as they were told, {current().size} together or each alone."
        )
    finally:
        port, had_group = opened[0]
        if had_group:
            rejoin(port)


def _meet_everywhere(answer: Callable) -> None:
    for number, (where, together) in enumerate(SITUATIONS):
        ports = on_ranks(_hold_port, patience=PREPARING)
        told = on_ranks(_arguments, answer, number, ports[0])
        for rank, (given, problem) in enumerate(told):
            expected = (rank, current().size) if together else (0, 1)
            if problem := problem or _arguments_problem(given, expected):
                raise NotYet(f"{where}, on rank {rank}: {problem}")
        met = on_ranks(_meet, answer, number, ports[0], patience=PREPARING)
        on_ranks(_leave, patience=PREPARING)  # not before all have met: who is still connecting would be cut off
        for rank, (members, problem) in enumerate(met):
            wanted = current().size if together else 1
            if problem or members != wanted:
                said = problem or f"{members} met, {wanted} should have."
                raise NotYet(f"{where}, on rank {rank}: {said}")


def _arguments_problem(given: Any, expected: tuple[int, int]) -> str:
    if not isinstance(given, Mapping):
        return f"your answer is a {type(given).__name__}, not a dictionary of arguments."
    for name in ("rank", "world_size"):
        if name not in given:
            return f"your answer has no {name!r}."
        if type(given[name]) is not int:
            return f"{name} is {given[name]!r}, not a whole number; variables are text."
    if (given["rank"], given["world_size"]) != expected:
        return (
            f"rank and world size are {expected[0]} and {expected[1]}, "
            f"your answer is {given['rank']} and {given['world_size']}."
        )
    if not given.keys() & {"init_method", "store"}:
        return "your answer says nothing about the place: neither 'init_method' nor 'store'."
    return ""


@grader
def two_levels(answer: Callable[[Sequence[int]], tuple[Sequence[Sequence[int]], Sequence[int]]]) -> Verdict:
    """Grade the groups of a job with one group per node and one of the nodes' first ranks, then add up over them.

    Args:
        answer: ``two_levels(nodes)`` returns the list of ranks of each node, and the list of the first ranks, where
            node i runs ``nodes[i]`` processes. It runs in the notebook.

    Exercise of the chapter *meeting-up*.
    """
    world = current()
    answers = []
    for nodes in (tuple(world.nodes), *CLUSTERS):
        given, problem = asked(answer, list(nodes))
        if not problem:
            levels, problem = asked(_lists, given)  # what comes out of a generator is the answer's as well
        if problem := problem or _levels_problem(levels, nodes):
            return not_yet(f"With nodes={list(nodes)}: {problem}")
        answers.append(levels)
    inner, leaders = answers[0]  # the groups for the ranks that run
    totals = on_ranks(_add_in_levels, inner, leaders, patience=PREPARING)
    flat, cut = _connections([range(world.size)]), _connections([*inner, leaders])
    return correct(
        f"added up over two levels, every rank has {totals[0]}, as one process. "
        f"The groups need {cut} connections, one group of all needs {flat}."
    )


def _lists(given: Any) -> tuple[list[list[int]], list[int]] | None:
    """Return an answer as lists of whole numbers, None where it is something else."""
    try:
        inner, leaders = given
        return [[operator.index(rank) for rank in group] for group in inner], [operator.index(rank) for rank in leaders]
    except (TypeError, ValueError):
        return None


def _levels_problem(levels: tuple[list[list[int]], list[int]] | None, nodes: Sequence[int]) -> str:
    if levels is None:
        return "return two lists: the ranks of each node, and the first ranks of the nodes."
    inner, leaders = levels
    by_node = [[p.rank for p in places(nodes) if p.node_rank == node] for node in range(len(nodes))]
    first = [ranks[0] for ranks in by_node]
    if len(inner) != len(nodes):
        return f"there are {len(nodes)} nodes, your answer has {len(inner)} groups for them."
    for node, (mine, wanted) in enumerate(zip(inner, by_node, strict=True)):
        if mine != wanted:
            why = " Those are local ranks." if node and mine == list(range(nodes[node])) else ""
            return f"node {node} runs {_ranks(wanted)}, your answer is {mine}.{why}"
    if leaders != first:
        why = " Those are the numbers of the nodes." if leaders == list(range(len(nodes))) else ""
        return f"the first ranks of the nodes are {first}, your answer is {leaders}.{why}"
    return ""


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def _connections(groups: Sequence[Sequence[int]]) -> int:
    return sum(len(group) * (len(group) - 1) // 2 for group in groups)


# -- what runs on a rank -----------------------------------------------------------------------------------------


def _leave() -> bool:
    """Leave every group and give the port back; forget the tries that failed: who counts unequally meets no more."""
    global _held
    import torch.distributed as dist

    if _held:
        _held.close()
        _held = None
    if dist.is_initialized():
        dist.destroy_process_group()
    count_anew()
    return True


def _hold_port() -> int:
    """Hold a free port on rank 0, so that nobody else takes it before the ranks meet there; 0 on other ranks."""
    global _held
    if os.environ["RANK"] != "0":
        return 0
    _held = reserve_port(os.environ["MASTER_ADDR"])
    return _held.getsockname()[1]


def _environment(situation: int, port: int) -> dict[str, str]:
    """Return the environment of this rank as it would be in a situation, by its number."""
    rank, size = os.environ["RANK"], os.environ["WORLD_SIZE"]
    place = {"MASTER_ADDR": os.environ["MASTER_ADDR"], "MASTER_PORT": str(port)}
    torchrun = {"RANK": rank, "LOCAL_RANK": os.environ["LOCAL_RANK"], "WORLD_SIZE": size, **place}
    said = (
        torchrun,
        {},
        {"WORLD_SIZE": "1"},
        {"WORLD_SIZE": "4"},
        {"SLURM_PROCID": rank, "SLURM_LOCALID": os.environ["LOCAL_RANK"], "SLURM_NTASKS": size, **place},
        {**torchrun, "SLURM_PROCID": os.environ["GROUP_RANK"], "SLURM_NTASKS": os.environ["GROUP_WORLD_SIZE"]},
        {"SLURM_JOB_ID": "1", "SLURM_NTASKS": size},
    )[situation]
    return {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)} | said


def _arguments(answer: Callable, situation: int, port: int) -> tuple[Any, str]:
    """Return what the answer says, without the store (which cannot travel), and its error in words."""
    try:
        given, met = _told(answer, _environment(situation, port))
        if SITUATIONS[situation][1] and (problem := _written_down(answer, situation, given, met, port)):
            return None, problem
    except Exception as error:
        return None, f"your answer raised {describe(error)}"
    if isinstance(given, Mapping):
        given = {name: value if name != "store" else "" for name, value in given.items()}
    return given, ""


def _told(answer: Callable, environment: dict[str, str]) -> tuple[Any, tuple[str | None, ...]]:
    """Call an answer in an environment; return what it says, and the place that the environment names afterwards."""
    with mock.patch.dict(os.environ, environment, clear=True):
        return answer(os.environ), tuple(map(os.environ.get, ELSEWHERE))


def _written_down(answer: Callable, situation: int, given: Any, met: tuple[str | None, ...], port: int) -> str:
    """Say that an answer names a place of its own, "" where it names the one that it was told."""
    if not isinstance(given, Mapping):
        return ""
    told = os.environ["MASTER_ADDR"], str(port)
    own = getattr(given.get("store"), "port", port)
    if abs(own - port) > NEAR:  # one beside MASTER_PORT is right: under torchrun, its agent listens at that one
        return (
            f"MASTER_PORT is {port}, and your store is at port {own}: a port that is written down is taken elsewhere."
        )
    if "store" not in given and given.get("init_method", "env://") == "env://" and met != told:
        names = " and ".join(ELSEWHERE)
        return f"{names} were {' and '.join(told)}, and your answer changes them to {' and '.join(map(str, met))}."
    if not str(given.get("init_method")).startswith("tcp://"):
        return ""
    place = _told(answer, _environment(situation, 0) | ELSEWHERE)[0]["init_method"]
    url = urlsplit(place)
    if f"{url.hostname}:{url.port}" == "{MASTER_ADDR}:{MASTER_PORT}".format(**ELSEWHERE):
        return ""
    elsewhere = " and ".join(f"{name} is {value}" for name, value in ELSEWHERE.items())
    return f"where {elsewhere}, your answer still is {place!r}."


def _meet(answer: Callable, situation: int, port: int) -> tuple[int, str]:
    """Meet with the answer's arguments; return how many met, and the error in words."""
    import torch.distributed as dist

    environment = _environment(situation, port)
    # One process that opens port 0 again may be led to the last server there, which is closing (torch keeps one
    # server a port number, multi_tenant in TCPStore.cpp, 2.13). That is not the answer's fault.
    for tries_left in (0,) if SITUATIONS[situation][1] else (2, 1, 0):
        try:
            with mock.patch.dict(os.environ, environment, clear=True):
                dist.init_process_group(**{"backend": "gloo", "timeout": PATIENCE, **answer(os.environ)})
            return dist.get_world_size(), ""  # gloo has connected this rank with every other one
        except Exception as error:
            if not tries_left or not isinstance(error, dist.DistNetworkError):
                return 0, f"the meeting raised {describe(error)}"
            _leave()
    return 0, ""


def _add_in_levels(by_node: Sequence[Sequence[int]], leaders: Sequence[int]) -> int:
    """Add up over this rank's node, then over the first ranks, and hand the sum back inside the node."""
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("gloo")
    groups = [dist.new_group(list(ranks)) for ranks in (*by_node, leaders)]
    rank = dist.get_rank()
    node = next(number for number, ranks in enumerate(by_node) if rank in ranks)

    def everyone_has(value: int, group: Any) -> list[int]:
        values = [0] * dist.get_world_size(group)
        dist.all_gather_object(values, value, group=group)
        return values

    total = sum(everyone_has(rank + 1, groups[node]))
    if rank in leaders:
        total = sum(everyone_has(total, groups[-1]))
    return everyone_has(total, groups[node])[0]
