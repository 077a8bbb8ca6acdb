"""Where the ranks of a world stand: ranks and nodes as plain data.

Pure: no torch, no ipyparallel, no process. The driver side uses it to start ranks, the tests use it to say what
torchrun would have set. Used by the chapter *rank-local-rank-world-size*.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .errors import WorldError

SHOWN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
# torch asks for the name of every address that it connects to (torch/csrc/distributed/c10d/socket.cpp, 2.13). On one
# machine that is ::ffff:127.0.0.1, which /etc/hosts has not: a name server that does not answer costs five seconds.
IMPATIENT = ("RES_OPTIONS", "timeout:1 attempts:2")


@dataclass(frozen=True)
class Place:
    """One rank's place in the world, under the names torchrun gives it.

    Attributes:
        rank: number of this process among all processes of the job, 0 … world_size − 1 (``RANK``).
        local_rank: number of this process on its node, starts again at 0 on every node (``LOCAL_RANK``).
        node_rank: number of the node (``GROUP_RANK``; torchrun sets no ``NODE_RANK``).
        world_size: processes in the job, on all nodes together (``WORLD_SIZE``).
        local_world_size: processes on this node (``LOCAL_WORLD_SIZE``).
        nnodes: nodes in the job (``GROUP_WORLD_SIZE``).
    """

    rank: int
    local_rank: int
    node_rank: int
    world_size: int
    local_world_size: int
    nnodes: int

    def environment(self, master_addr: str, master_port: int) -> dict[str, str]:
        """Return the variables torchrun sets for the process at this place.

        Follows ``_start_workers`` in torch/distributed/elastic/agent/server/local_elastic_agent.py (torch 2.13),
        less the TORCHELASTIC_* variables: no elastic agent stands behind these ranks. ``OMP_NUM_THREADS`` is 1 as
        soon as a node runs several ranks, as torch/distributed/run.py does.

        Args:
            master_addr: host on which rank 0 listens.
            master_port: TCP port on which rank 0 listens.
        """
        environment = {
            "RANK": self.rank,
            "LOCAL_RANK": self.local_rank,
            "GROUP_RANK": self.node_rank,
            "ROLE_RANK": self.rank,
            "ROLE_NAME": "default",
            "WORLD_SIZE": self.world_size,
            "LOCAL_WORLD_SIZE": self.local_world_size,
            "GROUP_WORLD_SIZE": self.nnodes,
            "ROLE_WORLD_SIZE": self.world_size,
            "MASTER_ADDR": master_addr,
            "MASTER_PORT": master_port,
        }
        if self.local_world_size > 1:
            environment["OMP_NUM_THREADS"] = 1
        return {name: str(value) for name, value in environment.items()}


def places(nodes: Sequence[int]) -> list[Place]:
    """Number the ranks of a job node by node, as torchrun does.

    Args:
        nodes: processes on each node, for example ``[2, 1]``.

    Returns:
        One place a rank, in rank order.
    """
    size = sum(nodes)
    return [
        Place(
            rank=sum(nodes[:node_rank]) + local_rank,
            local_rank=local_rank,
            node_rank=node_rank,
            world_size=size,
            local_world_size=count,
            nnodes=len(nodes),
        )
        for node_rank, count in enumerate(nodes)
        for local_rank in range(count)
    ]


def shell_commands(nodes: Sequence[int], address: str, program: str, added: Sequence[Mapping[str, str]] = ()) -> str:
    """Return the shell commands that start the ranks of a job by hand, one per line; ``$PORT`` is a free port.

    Args:
        nodes: processes on each node.
        address: host on which rank 0 listens.
        program: what each rank runs.
        added: further variables of each rank, in rank order; none where it is empty.
    """
    lines = []
    for place in places(nodes):
        environment = place.environment(address, 0) | {"MASTER_PORT": "$PORT"}
        told = {name: environment[name] for name in SHOWN} | dict(added[place.rank] if added else {})
        shown = " ".join(f"{name}={value}" for name, value in told.items())
        lines.append(f"{shown} python {program} &")
    return "\n".join(lines)


def read_layout(size: object = None, nodes: object = None) -> tuple[int, ...]:
    """Turn what a reader passed to ``ranklab.start`` into processes a node.

    Args:
        size: number of ranks on one node.
        nodes: processes on each node; excludes ``size``.

    Returns:
        Processes on each node.

    Raises:
        WorldError: a sentence that says what was wrong and what to write instead.
    """
    if size is not None and nodes is not None:
        raise WorldError("Give either a number of ranks, start(4), or processes a node, start(nodes=[2, 2]), not both.")
    if nodes is None:
        return (_count(4 if size is None else size, "start(4)"),)
    if isinstance(nodes, (str, bytes)) or not isinstance(nodes, Sequence):
        raise WorldError(
            f"nodes lists the processes of each node, for example start(nodes=[2, 1]), but it is {nodes!r}."
        )
    if not nodes:
        raise WorldError("nodes is empty: list the processes of each node, for example start(nodes=[2, 1]).")
    return tuple(_count(count, "start(nodes=[2, 1])") for count in nodes)


def _count(value: object, example: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise WorldError(f"The number of ranks is a whole number, for example {example}, but it is {value!r}.")
    if value < 1:
        raise WorldError(f"A node needs at least one rank, for example {example}, but {value} was asked for.")
    return value


def read_ranks(text: str, size: int) -> list[int]:
    """Read ``--ranks``: ``"0,2"``, ``"1-3"``, ``"all"`` or a mixture of the first two.

    Args:
        text: what the reader typed.
        size: world size.

    Returns:
        The chosen ranks, in rank order, each once.

    Raises:
        WorldError: a rank that does not exist, or text that names no rank.
    """
    if text.strip() == "all":
        return list(range(size))
    chosen = set()
    for part in text.strip("[]() ").split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise WorldError(f"--ranks takes numbers, for example --ranks 0,2 or --ranks 1-3, not {text!r}.")
        end = int(last if dash else first)
        if end >= size:
            has = "only rank 0" if size == 1 else f"ranks 0 to {size - 1}"
            raise WorldError(f"There is no rank {end}: this world has {has}.")
        if int(first) > end:
            raise WorldError(f"--ranks {part.strip()} names no rank: write the smaller number first.")
        chosen |= set(range(int(first), end + 1))
    return sorted(chosen)


def name_ranks(ranks: Iterable[int]) -> str:
    """Say which ranks: ``rank 2``, ``ranks 0–3``, ``ranks 0, 2``, runs of three or more as a range."""
    ranks = sorted(ranks)
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(str(rank) for rank in run) for run in runs]
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(parts)
