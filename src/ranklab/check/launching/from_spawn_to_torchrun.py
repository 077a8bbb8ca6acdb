"""Graders of the chapter *from-spawn-to-torchrun*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from unittest import mock

from ...layout import places
from ...world import current
from ..grading import PREPARING, Raised, asked, on_ranks, safely
from ..ranks.meeting_up import LAUNCHERS
from ..verdict import NotYet, Verdict, correct, grader, not_yet

CLUSTERS = ((2, 1), (3, 1, 2), (1, 4), (8, 8))
TOLD = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE")
# What the exercise on commands asks for: a second cluster, where node 0 is, and the program.
COMMANDED = ((2, 1, 3), (1, 2))
ADDRESS, PROGRAM = "computer1", "train.py"
# A rank of two nodes: where all ranks that run stand on one, each local number is the global one.
IMAGINED = {
    "RANK": "5",
    "LOCAL_RANK": "1",
    "GROUP_RANK": "1",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_WORLD_SIZE": "2",
    "MASTER_ADDR": ADDRESS,
    "MASTER_PORT": "23456",
}


@grader
def rank_of(answer: Callable[[int, int, list[int]], int]) -> Verdict:
    """Grade the rank of a process from its place, against the running ranks, then on other clusters.

    Args:
        answer: ``rank_of(node_rank, local_rank, nodes)`` returns the rank of a process, where node i runs
            ``nodes[i]`` processes. It runs in the notebook.

    Exercise of the chapter *from-spawn-to-torchrun*.
    """
    world = current()
    live = on_ranks(_told, patience=PREPARING)
    cases = [(world.nodes, int(t["GROUP_RANK"]), int(t["LOCAL_RANK"]), int(t["RANK"])) for t in live]
    cases += [(nodes, p.node_rank, p.local_rank, p.rank) for nodes in CLUSTERS for p in places(nodes)]
    for nodes, node_rank, local_rank, rank in cases:
        where = f"With nodes={list(nodes)}, local rank {local_rank} of node {node_rank}"
        given, problem = asked(answer, node_rank, local_rank, list(nodes))
        if problem:
            return not_yet(f"{where}: {problem}")
        if given != rank or isinstance(given, bool):
            return not_yet(f"{where} is rank {rank}, your answer is {given!r}.")
    return correct(f"the {world.size} ranks that run say the same, and {len(CLUSTERS)} other clusters agree.")


@grader
def node_commands(answer: Callable[[list[int]], Sequence[str]]) -> Verdict:
    """Grade the torchrun commands of two clusters: torchrun's own parser reads them on the running ranks.

    Args:
        answer: ``node_commands(nodes)`` returns one command a node, as typed there, where node i runs ``nodes[i]``
            processes. All use static rendezvous.

    Exercise of the chapter *from-spawn-to-torchrun*.
    """
    world = current()
    other = next(nodes for nodes in COMMANDED if nodes != tuple(world.nodes))
    every = []
    for nodes, where in ((tuple(world.nodes), ""), (other, f"With nodes={list(other)}: ")):
        every.append(_commands(answer, nodes, where))
    read = on_ranks(_read_commands, *every, patience=PREPARING)
    # The first rank of a node has read the command of its node and knows its own environment.
    firsts = [next(place.rank for place in places(world.nodes) if place.node_rank == n) for n in range(len(every[0]))]
    live = [read[rank][:2] for rank in firsts]
    imagined = [(_imagined(other, node), given) for node, given in enumerate(read[0][2])]
    for cluster, where in ((live, ""), (imagined, f"With nodes={list(other)}: ")):
        if problem := _cluster_problem(cluster):
            return not_yet(f"{where}{problem}")
    return correct(
        f"torchrun reads {len(live)} commands, and they say what the running ranks say; "
        f"those for nodes={list(other)} are right too."
    )


def _commands(answer: Callable[[list[int]], Sequence[str]], nodes: Sequence[int], where: str) -> list[str]:
    """Return the commands for a cluster, which the answer has made in the notebook."""
    commands, problem = asked(answer, list(nodes))
    if problem:
        raise NotYet(f"{where}{problem[0].upper()}{problem[1:]}")
    if not isinstance(commands, Sequence) or isinstance(commands, str) or len(commands) != len(nodes):
        raise NotYet(f"{where}There are {len(nodes)} nodes: return a list of {len(nodes)} commands.")
    return [str(command) for command in commands]


def _imagined(nodes: Sequence[int], node: int) -> dict[str, str]:
    """Return what an agent of a cluster that does not run would tell the ranks of one node."""
    return {
        "LOCAL_WORLD_SIZE": str(nodes[node]),
        "GROUP_WORLD_SIZE": str(len(nodes)),
        "GROUP_RANK": str(node),
    }


def _cluster_problem(cluster: Sequence[tuple[Mapping[str, str], Mapping[str, Any]]]) -> str:
    """Say what is wrong with the commands of a cluster; "" where nothing is."""
    for node, (told, given) in enumerate(cluster):
        if problem := given.get("problem") or _command_problem(told, given):
            return f"The command of node {node}: {problem}"
    if len({given["port"] for _, given in cluster}) > 1:
        return "All nodes need the same --master-port: that of node 0."
    return ""


def _command_problem(told: Mapping[str, str], given: Mapping[str, Any]) -> str:
    size, nodes, node = (int(told[name]) for name in ("LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "GROUP_RANK"))
    if given["standalone"]:
        return "--standalone means one node; these nodes have to meet."
    if given["range"] != (nodes, nodes):
        return f"--nnodes is {nodes}, the number of nodes; yours is {given['nnodes']}."
    if given["processes"] != size:
        return f"--nproc-per-node is {size}, the processes of this node; yours is {given['nproc_per_node']}."
    if given["node_rank"] != node:
        return f"--node-rank is {node}; yours is {given['node_rank']}."
    if given["rdzv_backend"] != "static":
        return "leave out --rdzv-backend: the nodes are told their numbers here."
    if nodes > 1 and (problem := _meeting_problem(given)):
        return problem
    for option, used in {"-m": given["module"], "--no-python": given["no_python"]}.items():
        if used:
            return f"leave out {option}: {PROGRAM} is a file for Python to run, no module and no command."
    if PurePosixPath(given["training_script"]) != PurePosixPath(PROGRAM):
        return f"the program is {PROGRAM}; yours is {given['training_script']}."
    return ""


def _meeting_problem(given: Mapping[str, Any]) -> str:
    """Say what is wrong with the place where the nodes meet, as torchrun makes it from three options."""
    host, port = given["host"], given["port"]
    if given["rdzv_endpoint"]:
        if host != ADDRESS:
            return f"--rdzv-endpoint takes the place of --master-addr, and node 0 is at {ADDRESS}; yours is {host}."
        return "" if port else f"--rdzv-endpoint names no port: {ADDRESS}, a colon and a port are needed."
    if not port:
        return "it names no --master-port, so torchrun would take one that others take too."
    if host in ("", "127.0.0.1", "localhost"):
        return "without the --master-addr of node 0, a node looks for it on itself."
    if host != ADDRESS:
        return f"--master-addr is {ADDRESS}, where node 0 is; yours is {host}."
    return ""


@grader
def who_am_i(answer: Callable[[Mapping[str, str]], tuple[int, int]]) -> Verdict:
    """Grade how a program finds out who it is, under torchrun and under no launcher.

    Args:
        answer: ``who_am_i(environ)`` returns rank and world size from a process's environment, and (0, 1) where no
            launcher has set anything. It runs on every rank.

    Exercise of the chapter *from-spawn-to-torchrun*.
    """
    results = on_ranks(_ask_who, answer)
    cases = [
        (f"On rank {told['RANK']}", launched, (int(told["RANK"]), int(told["WORLD_SIZE"])))
        for told, launched, *_ in results
    ]
    _, _, imagined, alone = results[0]
    cases += [("On rank 5 of two nodes", imagined, (5, 8)), ("Without a launcher", alone, (0, 1))]
    for where, given, expected in cases:
        if isinstance(given, Raised):
            return not_yet(f"{where}, your answer raised {given.words}")
        if given != expected:
            return not_yet(f"{where}, rank and world size are {expected}; your answer is {_shown(given)}.")
    return correct(f"{len(results)} ranks know who they are, and a program without a launcher is rank 0 of 1.")


def _shown(given: tuple) -> str:
    return repr(given[0] if len(given) == 1 else given)


# -- what runs on a rank -----------------------------------------------------------------------------------------


def _told() -> dict[str, str]:
    return {name: os.environ[name] for name in TOLD}


def _ask_who(answer: Callable) -> tuple:
    """Answer for this rank as it is, for an imagined one, and as a program that nobody launched."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    environments = dict(os.environ), alone | IMAGINED, alone
    return _told(), *(_pair(safely(answer, environment)) for environment in environments)


def _pair(given: Any) -> Any:
    """Return an answer as a pair of whole numbers, or a one-tuple with what else it is; an error as it is."""
    if isinstance(given, Raised):
        return given
    pair = isinstance(given, (tuple, list)) and len(given) == 2 and all(type(number) is int for number in given)
    return tuple(given) if pair else (given,)


def _read_commands(commands: list[str], others: list[str]) -> tuple[dict[str, str], dict, list[dict]]:
    """Let torchrun's own parser read the command of this rank's node, and those of a cluster that does not run."""
    told = _told()
    return told, _read_command(commands[int(told["GROUP_RANK"])]), [_read_command(other) for other in others]


def _read_command(command: str) -> dict:
    """Return what torchrun makes of a command, without starting anything; or a problem, in words."""
    from torch.distributed.run import get_args_parser

    try:
        words = shlex.split(command.replace("\\\n", ""))  # as a shell joins lines; shlex would make a word of the break
    except ValueError as error:
        return {"problem": f"a shell cannot read it: {error}."}
    if words[:1] != ["torchrun"]:
        return {"problem": f"it begins with {words[0] if words else 'nothing'!r}, not with torchrun."}
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            given = get_args_parser().parse_args(words[1:])
        return vars(given) | _made_of(given)
    except SystemExit as end:
        if not end.code:
            return {"problem": "it prints torchrun's help and starts nothing."}
        return {"problem": f"torchrun says: {said.getvalue().strip().rpartition('error: ')[2]}."}
    except Exception as error:
        return {"problem": f"torchrun says: {error}"}


def _made_of(given: Any) -> dict[str, Any]:
    """Return what torchrun would start with: how many nodes and processes, and where they meet."""
    from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
    from torch.distributed.run import config_from_args, logger

    given.log_dir = None  # or torchrun would make the folder here
    # It sets OMP_NUM_THREADS, and says so, where nobody has: neither is for this rank.
    with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "1"}), mock.patch.object(logger, "disabled", True):
        config = config_from_args(given)[0]
    host, port = given.master_addr, given.master_port
    if given.rdzv_endpoint or port:
        host, port = parse_rendezvous_endpoint(config.rdzv_endpoint, default_port=0)
    size = config.min_nodes, config.max_nodes
    return {"range": size, "processes": config.nproc_per_node, "host": host, "port": port}
