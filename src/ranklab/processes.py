"""The processes behind a world: controller and ranks, started, signalled, replaced and ended.

The only place that knows how ranks start. Nothing here knows what a cell is.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import ipyparallel as ipp

from .deadman import HOME, OWNER
from .errors import RanklabError
from .gpus import visible_gpus
from .launcher import CONTROLLER_CMD, RankSetLauncher, end_all
from .layout import LOOPBACK, name_ranks, places, watchdog_path
from .live import Live, tell
from .on_rank import greet
from .rank import BACKEND
from .watchdog import ask

START_TIMEOUT = 120.0
# The hub admits an engine after two heartbeats; stock ipyparallel beats every 3 s. The number of misses keeps the
# time until a silent engine counts as lost at a minute, because a busy machine may delay many beats.
HEARTBEAT_MS = 100
HEARTBEAT_MISSES = 600
QUIET = 50  # above logging.ERROR: what goes wrong is told by the panel, not by ipyparallel's log


class Processes:
    """Controller and ranks of one world.

    Args:
        nodes: processes on each node.

    Raises:
        RanklabError: the ranks did not come up.
    """

    def __init__(self, nodes: Sequence[int]) -> None:
        self.size = sum(nodes)
        self.backend = _choose_backend(nodes)
        self.home = Path(tempfile.mkdtemp(prefix="ranklab-"))
        self._owned = {OWNER: str(os.getpid()), HOME: str(self.home)}
        self._port = _reserve_port()
        self._set: RankSetLauncher | None = None
        self.client: ipp.Client | None = None
        self._cluster = ipp.Cluster(
            engines=RankSetLauncher,
            profile_dir=str(self.home),
            load_profile=False,  # a reader's own ipcluster_config.py must not change the book
            cluster_file="",
            delay=0,
            log_level=QUIET,
            controller_args=[
                f"--HeartMonitor.period={HEARTBEAT_MS}",
                f"--HeartMonitor.max_heartmonitor_misses={HEARTBEAT_MISSES}",
            ],
        )
        try:
            self._start(nodes)
        except BaseException:
            self.stop()
            raise

    def _start(self, nodes: Sequence[int]) -> None:
        live = Live()
        environments = [self._environment(place) for place in places(nodes)]
        try:
            self._cluster.start_controller_sync(controller_cmd=CONTROLLER_CMD, environment=self._owned)
            engine_set = self._cluster.start_engines_sync(self.size, environments=environments)
            self._set = self._cluster.engines[engine_set]
            self.client = self._cluster.connect_client_sync()
        except (OSError, RuntimeError, ipp.error.IPythonError) as error:
            raise RanklabError(f"ipyparallel's controller did not start: {error}") from error
        self._await(list(range(self.size)), live, f"starting {name_ranks(range(self.size))}")
        live.finish()

    def _environment(self, place) -> dict[str, str]:
        environment = place.environment("127.0.0.1", self.master_port)
        environment |= self._owned
        environment[BACKEND] = self.backend
        # Gloo otherwise looks up this machine's name, which resolves wrongly on many laptops.
        environment["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", LOOPBACK)
        return environment

    def _await(self, ranks: list[int], live: Live, doing: str) -> None:
        """Wait until the controller has admitted these ranks."""
        deadline = time.monotonic() + START_TIMEOUT
        while not set(ranks) <= set(self.client.ids):
            dead = [rank for rank in ranks if self.exit_code(rank) is not None]
            if dead or time.monotonic() > deadline:
                raise RanklabError(self._why_not(dead))
            if live.due():
                live.show({"text/plain": f"{doing}: {len(self.client.ids)} of {self.size} up, {live.seconds} s"})
            time.sleep(0.02)
        answers = {rank: self.client[rank].apply_async(greet) for rank in ranks}
        for rank, answer in answers.items():
            said = answer.get(max(0, deadline - time.monotonic()))
            assert said == rank, f"engine {rank} is rank {said}"

    def _why_not(self, dead: list[int]) -> str:
        if not dead:
            up = name_ranks(self.client.ids) if self.client.ids else "none"
            return f"Not all ranks came up within {START_TIMEOUT:g} s (up: {up}). Is the machine overloaded?"
        last = self._set.ranks[dead[0]].get_output().strip().splitlines()[-1:]
        return f"{name_ranks(dead)} ended while starting: {' '.join(last) or 'no output'}"

    def alive(self) -> list[int]:
        """Return the ranks whose processes run."""
        known = set(self.client.ids)
        return [rank for rank in range(self.size) if rank in known and self.exit_code(rank) is None]

    def exit_code(self, rank: int) -> int | None:
        """Return how the process of a rank ended (−9: killed by signal 9), or None while it runs."""
        return self._set.exit_code(rank)

    def how_it_died(self, rank: int, patience: float = 2.0) -> str:
        """Say in one sentence how the process of a rank ended."""
        # The controller can hear of a death a moment before the operating system hands out the exit status.
        _poll(lambda: self.exit_code(rank) is not None, patience)
        code = self.exit_code(rank)
        if code is None:
            return f"rank {rank} is lost: the controller no longer hears it."
        if code < 0:
            return f"rank {rank} was killed by {signal.Signals(-code).name}."
        return f"rank {rank} ended with exit status {code}."

    def new_master_port(self) -> int:
        """Reserve another port for rank 0.

        After a hang the old one may still be served by a store that something in rank 0 keeps alive, with the keys
        of the old process group in it.
        """
        self._port.close()
        self._port = _reserve_port()
        return self.master_port

    @property
    def master_port(self) -> int:
        """The TCP port on which rank 0 listens."""
        return self._port.getsockname()[1]

    def ask(self, rank: int, question: str) -> dict | int | None:
        """Ask the watchdog of a rank; see :func:`ranklab.watchdog.ask`."""
        return ask(watchdog_path(self.home, rank), question)

    def signal(self, rank: int, number: int) -> None:
        """Send a signal to the process of one rank; nothing happens where it has ended."""
        if self._set is not None:
            self._set.signal_rank(rank, number)

    def replace(self, ranks: list[int]) -> None:
        """Start a new process in the place of each of these ranks, which have died."""
        live = Live()
        if not _poll(lambda: not set(ranks) & set(self.client.ids), START_TIMEOUT):
            raise RanklabError(f"{name_ranks(ranks)} died, but the controller has not noticed. Use world.restart().")
        for rank in ranks:
            self._set.environments[rank]["MASTER_PORT"] = str(self.master_port)
            self._set.start_rank(rank)
        self._await(ranks, live, f"starting {name_ranks(ranks)} again")
        live.finish()

    def stop(self) -> None:
        """End everything that was started. Twice is fine."""
        if self.client is not None:
            self.client.close()
            self.client = None
        if self._cluster is not None:
            helpers = self._set.children() if self._set is not None else []
            # Ranks hold nothing that needs an orderly end, and a rank stuck in a collective ignores SIGTERM.
            for rank in range(self.size):
                self.signal(rank, signal.SIGKILL)
            self._cluster.stop_cluster_sync()
            self._cluster = None
            end_all(helpers)
        self._port.close()
        shutil.rmtree(self.home, ignore_errors=True)


def _choose_backend(nodes: Sequence[int]) -> str:
    """NCCL where each rank has a GPU of its own: it takes no two ranks on one GPU.

    Nodes laid out on one machine would count the same GPUs twice, each from local rank 0.
    """
    gpus = visible_gpus()
    if gpus and len(nodes) > 1:
        tell("Several nodes on one machine would share its GPUs: the ranks use the CPU and gloo.")
    elif gpus and gpus < nodes[0]:
        have = "1 GPU is" if gpus == 1 else f"{gpus} GPUs are"
        tell(f"{have} fewer than {nodes[0]} ranks: the ranks use the CPU and gloo.")
    elif gpus:
        return "nccl"
    return "gloo"


def _reserve_port() -> socket.socket:
    """Hold a free port for rank 0 to listen on.

    The socket is bound but does not listen: other programs that ask for any free port do not get this one, and
    rank 0, which sets SO_REUSEADDR as we do, does.
    """
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder


def _poll(condition: Callable[[], bool], patience: float) -> bool:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
