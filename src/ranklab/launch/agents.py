"""The torchruns of a launch: one agent a node, each under a warden, stopped together."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..layout import IMPATIENT, places
from ..system.backends import interfaces
from ..system.deadman import HOME, OWNER
from ..system.pipes import piped
from .commandline import Launch
from .copied import may_copy
from .ranklogs import Log

# -P and not -I: psutil may be one that PYTHONPATH leads to, or of the user alone.
WARDEN = (sys.executable, "-P", str(Path(__file__).with_name("warden.py")))
TORCHRUN = (sys.executable, "-P", "-m")
QUICK = str(Path(__file__).with_name("quick"))
COPIES = (sys.executable, "-u", str(Path(QUICK, "copies.py")))
STOP = 5.0
# What torchrun's agent logs (torch/distributed/elastic/agent/server/api.py, torch 2.13): _initialize_workers and
# _rendezvous. Static rendezvous says which ranks a node gets; c10d decides it when the nodes meet.
ARRIVED = "Rendezvous'ing worker group"
MET = re.compile(
    r"Rendezvous complete.*?restart_count=(\d+).*?group_rank=(\d+).*?global_ranks=\[([\d, ]*)\]", re.DOTALL
)


class Agent:
    """torchrun on one node.

    Args:
        launch: what is launched.
        node: which node of it.
        port: where the nodes meet.
        folder: a private folder for what torchrun and its ranks write.
        environment: of torchrun.
        host: an object with ``popen``, for a node that is a host of its own; None on this machine.

    Attributes:
        node: which node.
        process: its warden.
        log: what torchrun itself wrote to stderr.
        stopped: whether it still ran when it was told to end.
    """

    def __init__(
        self, launch: Launch, node: int, port: int, folder: Path, environment: Mapping[str, str], host: Any = None
    ) -> None:
        self.node, self.launch = node, launch
        self.folder = folder / str(node)
        self.folder.mkdir()
        self.log = Log(self.folder / "torchrun.stderr")
        self.stopped = False
        self._ranks: dict[tuple[int, int, str], Log] = {}
        options = [*launch.options(node, port), "--redirects=3", f"--log-dir={self.folder / 'ranks'}"]
        start = [*TORCHRUN, launch.module]
        # Copies would agree about the order of a set; where the seed of hashes is random, ranks must not.
        seeded = environment.get("PYTHONHASHSEED", "").isdigit()
        if not launch.fresh and seeded and may_copy(Path(launch.script)):
            start = [*COPIES, launch.module]
        torchrun = [*start, *options, *launch.program()]
        popen = subprocess.Popen if host is None else host.popen
        with self.log.path.open("wb") as stderr, open(self.folder / "torchrun.stdout", "wb") as stdout:
            self.process = popen(
                [*WARDEN, str(folder), *torchrun],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                env=dict(environment),
                start_new_session=True,
            )

    def running(self) -> bool:
        """Say whether torchrun still runs."""
        return self.process.poll() is None

    @property
    def failed(self) -> bool:
        """Whether torchrun ended with an error."""
        return not self.running() and self.process.returncode != 0

    def arrived(self) -> bool:
        """Say whether this node has come to the meeting point."""
        return ARRIVED in self.log.text()

    def met(self) -> list[tuple[int, list[int]]]:
        """Return, for each time the nodes have met, the restart count and this node's ranks by local rank."""
        found = MET.findall(self.log.text())
        return [(int(count), [int(rank) for rank in ranks.split(",")]) for count, _, ranks in found]

    def ranks(self) -> list[int]:
        """Return the ranks of this node, by local rank."""
        if met := self.met():
            return met[-1][1]
        return [place.rank for place in places(self.launch.nodes) if place.node_rank == self.node]

    def attempts(self) -> int:
        """Return how often torchrun has started the ranks of this node."""
        return len(list(self.folder.glob("ranks/*/attempt_*")))

    def file(self, local_rank: int, name: str, attempt: int = -1) -> Log:
        """Return a file of one rank: "stdout.log", "stderr.log" or "error.json".

        Args:
            local_rank: which rank of this node.
            name: which file.
            attempt: which start of the ranks; the last where nothing is said.
        """
        attempt = attempt if attempt >= 0 else max(0, self.attempts() - 1)
        if (attempt, local_rank, name) not in self._ranks:
            runs = list(self.folder.glob("ranks/*")) or [self.folder / "ranks" / "none"]
            path = runs[0] / f"attempt_{attempt}" / str(local_rank) / name
            if not path.exists():
                return Log(path)
            self._ranks[attempt, local_rank, name] = Log(path)
        return self._ranks[attempt, local_rank, name]

    def look(self) -> None:
        """Keep the files of this node small."""
        self.log.look()
        for attempt in range(self.attempts()):
            for local_rank in range(self.launch.nodes[self.node]):
                for name in ("stdout.log", "stderr.log"):
                    self.file(local_rank, name, attempt).look()

    def await_moment(self, seconds: float) -> None:
        """Wait a moment, or less where torchrun ends in it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def release(self) -> None:
        """Tell the warden to end everything on this node; returns at once."""
        self.stopped = self.stopped or self.running()
        with contextlib.suppress(BrokenPipeError):  # the warden has ended already
            piped(self.process.stdin).close()

    def await_end(self, seconds: float = STOP) -> None:
        """Wait until the warden has ended; kill it where it does not."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def stop(agents: list[Agent]) -> None:
    """End every agent and all that descends from it."""
    for agent in agents:  # all pipes first: a stop that is pressed again interrupts only the waiting
        agent.release()
    for agent in agents:
        agent.await_end()


def environment_for(
    launch: Launch, extra: Mapping[str, object] | None, loopback: str | None, folder: Path
) -> dict[str, str]:
    """Return the environment of torchrun.

    Args:
        launch: what is launched.
        extra: the reader's variables.
        loopback: the interface on which all ranks meet where they share a machine, else None.
        folder: the private folder of the launch; the doctor finds processes by it.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKLAB_")}
    if environment.get("MPLBACKEND", "").startswith("module://"):
        del environment["MPLBACKEND"]  # the notebook's own; a program has no notebook to draw in
    environment |= {HOME: str(folder), OWNER: str(os.getpid())}
    # torchrun's agents then say when they have arrived and which ranks they have got.
    environment["LOGLEVEL"] = "INFO"
    if loopback:
        # A host name that resolves to nothing, or to another interface, is no obstacle on one machine.
        for name, value in (*interfaces(loopback).items(), IMPATIENT):
            environment.setdefault(name, value)
        environment.setdefault("PET_LOCAL_ADDR", launch.address)
    environment |= {name: str(value) for name, value in (extra or {}).items()}
    folders = filter(None, (QUICK, environment.get("PYTHONPATH")))
    return environment | {"PYTHONPATH": os.pathsep.join(folders)}
