"""The torchrun commands of a launch, as data: what is typed on each node, and what really runs.

Pure: no torch, no process. Used in the chapter *from-spawn-to-torchrun*.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import WorldError

STANDALONE, STATIC, C10D = "standalone", "static", "c10d"
MEETINGS = (STATIC, C10D)
TORCHRUN = "torchrun"
LAUNCHERS = (TORCHRUN, "torch.distributed.launch")
PORT = "$PORT"
RUN_ID = "job"
LOOPBACK_ADDRESS = "127.0.0.1"
# Options of torchrun that torchrun(...) sets itself, with what to write instead.
OWNED = {
    "nnodes": "give one number a node: nproc_per_node=[2, 1]",
    "node_rank": "give one number a node: nproc_per_node=[2, 1]",
    "rdzv_backend": 'write rdzv="c10d" or rdzv="static"',
    "rdzv_endpoint": "ranklab finds a free port",
    "rdzv_id": "ranklab names the job",
    "master_addr": 'write address="computer1"',
    "master_port": "ranklab finds a free port",
    "log_dir": "ranklab keeps what each rank prints: run.outputs",
    "redirects": "ranklab keeps what each rank prints: run.outputs",
    "tee": "ranklab shows what each rank prints",
}


@dataclass(frozen=True)
class Launch:
    """One launch: a program on so many processes of so many nodes.

    Attributes:
        script: the program, as the reader wrote it.
        arguments: what the program gets.
        nodes: processes on each node.
        rdzv: how nodes meet: "standalone" (one node), "static" or "c10d".
        flags: further options of torchrun, as typed.
        launcher: "torchrun", or the module of an older launcher.
        names: what the nodes are called, one per node; empty on one machine.
        address: where node 0 is.
        fresh: whether each rank is a Python of its own from its first line, and no copy of one that imported torch.
    """

    script: str
    arguments: tuple[str, ...] = ()
    nodes: tuple[int, ...] = (1,)
    rdzv: str = STANDALONE
    flags: tuple[str, ...] = ()
    launcher: str = TORCHRUN
    names: tuple[str, ...] = ()
    address: str = LOOPBACK_ADDRESS
    fresh: bool = True

    @property
    def size(self) -> int:
        """World size: the sum of the processes of all nodes."""
        return sum(self.nodes)

    @property
    def command(self) -> str:
        """What is typed before the options."""
        return TORCHRUN if self.launcher == TORCHRUN else f"python -m {self.launcher}"

    @property
    def module(self) -> str:
        """The module that the command runs."""
        return "torch.distributed.run" if self.launcher == TORCHRUN else self.launcher

    def options(self, node: int, port: int | str) -> list[str]:
        """Return what stands between ``torchrun`` and the program on one node.

        Args:
            node: which node.
            port: a free port of node 0.
        """
        processes = f"--nproc-per-node={self.nodes[node]}"
        if self.rdzv == STANDALONE:
            return ["--standalone", processes, *self.flags]
        if self.rdzv == C10D:
            meeting = ["--rdzv-backend=c10d", f"--rdzv-endpoint={self.address}:{port}", f"--rdzv-id={RUN_ID}"]
            return [f"--nnodes={len(self.nodes)}", processes, *meeting, *self.flags]
        meeting = [f"--master-addr={self.address}", f"--master-port={port}"]
        return [f"--nnodes={len(self.nodes)}", f"--node-rank={node}", processes, *meeting, *self.flags]

    def program(self) -> list[str]:
        """Return the program and its arguments."""
        return [self.script, *self.arguments]

    def typed(self) -> str:
        """Return the commands to type, one per node; ``$PORT`` stands for any free port of node 0, the same in all."""
        lines = []
        for node in range(len(self.nodes)):
            # Quoted as a shell reads it; $PORT is meant to be filled in, by the reader or the shell.
            words = [*self.command.split(), *self.options(node, PORT), *self.program()]
            line = " ".join(word if word.endswith((f"={PORT}", f":{PORT}")) else shlex.quote(word) for word in words)
            prompt = f"{self.name(node)} $" if len(self.nodes) > 1 else "$"
            lines.append(f"{prompt} {line}")
        return "\n".join(lines)

    def name(self, node: int) -> str:
        """Return what a node is called."""
        return self.names[node] if self.names else f"node {node}"


def read_launch(
    script: object,
    arguments: Sequence[object],
    nproc_per_node: object,
    rdzv: str | None,
    hosts: Sequence[Any] | None,
    flags: Mapping[str, object],
    launcher: str = TORCHRUN,
    address: str | None = None,
    fresh: bool = False,
) -> Launch:
    """Turn what a reader passed to ``ranklab.torchrun`` into a launch.

    Raises:
        WorldError: one sentence on what was wrong and what to write instead.
    """
    path = os.fspath(script) if isinstance(script, (str, os.PathLike)) else ""
    if not path:
        raise WorldError(f'Name the program to run, for example torchrun("hello.py"), not {script!r}.')
    if not (flags.get("module") or flags.get("no_python")) and not os.path.isfile(path):
        what = "is a folder, not a program" if os.path.isdir(path) else "does not exist"
        raise WorldError(f"{path} {what}. The path counts from the folder of the notebook.")
    nodes = _nodes(nproc_per_node)
    if hosts is not None and len(hosts) > 1 and isinstance(nproc_per_node, int):
        numbers = ", ".join([str(nproc_per_node)] * len(hosts))
        raise WorldError(f"There are {len(hosts)} hosts: give one number a host: nproc_per_node=[{numbers}].")
    if hosts is not None and len(hosts) < len(nodes):
        raise WorldError(f"There are {len(hosts)} hosts for {len(nodes)} nodes: nproc_per_node has one number a host.")
    flags = dict(flags)
    standalone = flags.pop("standalone", False)
    if standalone and (len(nodes) > 1 or rdzv is not None):
        raise WorldError("standalone means one node that meets itself: leave it out for several nodes or with rdzv=.")
    if rdzv is not None and rdzv not in MEETINGS:
        raise WorldError(f'rdzv is "static" or "c10d", or left out, not {rdzv!r}.')
    if launcher not in LAUNCHERS:
        raise WorldError(f'launcher is "torchrun" or "torch.distributed.launch", not {launcher!r}.')
    # A host of its own has its own address, which --standalone does not use.
    alone = len(nodes) == 1 and hosts is None
    return Launch(
        script=path,
        arguments=tuple(str(argument) for argument in arguments),
        nodes=nodes,
        rdzv=rdzv or (STANDALONE if alone else STATIC),
        flags=tuple(_flags(flags)),
        launcher=launcher,
        names=tuple(str(getattr(host, "name", f"node {node}")) for node, host in enumerate(hosts or ())),
        fresh=fresh or sys.platform != "linux",
        address=address or (str(getattr(hosts[0], "name", LOOPBACK_ADDRESS)) if hosts else LOOPBACK_ADDRESS),
    )


def _nodes(value: object) -> tuple[int, ...]:
    counts = list(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else [value]
    if not counts:
        raise WorldError("nproc_per_node is empty: give one number a node, for example nproc_per_node=[2, 1].")
    checked = []
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int):
            raise WorldError(
                "nproc_per_node is a whole number, or one number a node, for example nproc_per_node=[2, 1], "
                f"but it is {value!r}."
            )
        if count < 1:
            raise WorldError(f"A node needs at least one process, but nproc_per_node is {value!r}.")
        checked.append(count)
    return tuple(checked)


def _flags(flags: Mapping[str, object]) -> list[str]:
    """Spell keywords as options: ``max_restarts=3`` is ``--max-restarts=3``, ``module=True`` is ``--module``."""
    options = []
    for name, value in flags.items():
        if name in OWNED:
            raise WorldError(f"torchrun() sets --{name.replace('_', '-')} itself: {OWNED[name]}.")
        if value is None or value is False:
            continue
        spelled = f"--{name.replace('_', '-')}"
        options.append(spelled if value is True else f"{spelled}={value}")
    return options
