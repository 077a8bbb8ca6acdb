"""The processes behind a world: controller and ranks, started, signalled, replaced and ended.

The only place that knows how ranks start. Nothing here knows what a cell is.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import RanklabError, StartLost
from ..layout import name_ranks, places
from ..rank.recorder import BUFFER, ENTRIES
from ..state import Answer, RankState
from ..system import backends, leftovers
from ..system.deadman import HOME, OWNER, is_stopped
from ..system.home import watchdog_path
from ..system.patience import ANSWER, EXIT_STATUS, overdue
from ..system.ports import says_taken
from ..system.refused import no_more
from .asking import More, ask
from .choice import FORK, SENTENCES, SPAWN, check_room, choose_launcher
from .controllers import connect, controller_runs, family, kill_controller, last_line, make_cluster
from .devices import choose_devices
from .forking import Server
from .greeting import greet_all
from .network import Computers, make_network
from .progress import Progress

if TYPE_CHECKING:
    import ipyparallel as ipp

    from ..lab.rates import Link
    from .launcher import RankSetLauncher

START_TIMEOUT = 120.0
POLL = 0.01
CHECK_EVERY = 1.0  # seconds between two looks at the controller's processes, which take some milliseconds


class Processes:
    """Controller and ranks of one world.

    Args:
        nodes: processes on each node.
        launcher: "fork", "spawn", or None for what is right on this machine.
        links: what the cable of each node carries, where the nodes are hosts of their own.
        backend: what the ranks shall talk over, None for what is right here.

    Attributes:
        launcher: which of the two is used.
        how: a sentence that says which, and why.
        network: what the ranks talk over.

    Raises:
        WorldError: no such launcher, or more ranks than memory holds.
        RanklabError: the ranks did not come up.
    """

    network: Computers = Computers()

    def __init__(
        self, nodes: Sequence[int], launcher: str | None = None, links: Sequence[Link] = (), backend: str | None = None
    ) -> None:
        self.size, self._lost = sum(nodes), ""
        self.launcher, self.how = choose_launcher(launcher)
        self._server: Server | None = None
        self._cluster: ipp.Cluster | None = None
        self._set: RankSetLauncher | None = None
        self._client: ipp.Client | None = None
        with Progress("looking at this machine") as progress:
            try:
                leftovers.clean()
                check_room(self.size, self.launcher)
                self.home = leftovers.make_home()
                # IPython otherwise makes a folder in the reader's home, which may be read-only.
                self._owned = {OWNER: str(os.getpid()), HOME: str(self.home), "IPYTHONDIR": str(self.home)}
            except OSError as error:
                raise RanklabError(no_more(error)) from error
            try:
                # The server comes first: it imports torch while this process imports ipyparallel.
                if self.launcher == FORK:
                    self._server = Server(self._owned, self.home / "fork-server.log")
                self.backend, self.devices = choose_devices(nodes, backend)
                self._start(nodes, links, progress)
            except OSError as error:
                self.stop()
                raise RanklabError(no_more(error)) from error
            except BaseException:
                self.stop()
                raise

    def _start(self, nodes: Sequence[int], links: Sequence[Link], progress: Progress) -> None:
        self._next_check = time.monotonic() + CHECK_EVERY
        progress.now("loading ipyparallel")
        self._cluster = make_cluster(self.home)
        from ipyparallel.error import IPythonError
        from zmq import ZMQError

        from .launcher import CONTROLLER_CMD

        progress.now("starting ipyparallel's controller")
        self._cluster.start_controller_sync(controller_cmd=CONTROLLER_CMD, environment=self._owned)
        self._controller = self._cluster.controller
        try:
            self._client = connect(self._cluster, self.home)
        except (RuntimeError, TimeoutError, IPythonError) as error:
            kind = StartLost if says_taken(last := last_line(self._controller)) else RanklabError
            raise kind(f"ipyparallel's controller did not start: {last or error}") from error
        except ZMQError as error:  # has an errno, and is no OSError
            raise OSError(error.errno, str(error)) from error
        progress.now("importing torch")
        self._cluster.engine_launcher_class = self._settle_launcher()
        # Two names: ranks that another launcher has started have a network too, but none that was made here.
        self.network = self._made = make_network(links, self.launcher, self.home)
        environments = [self._environment(place) for place in places(nodes)]
        options = {"server": self._server} if self._server else {}
        engine_set = self._cluster.start_engines_sync(self.size, environments=environments, **options)
        self._set = self._cluster.engines[engine_set]
        self._await(list(range(self.size)), progress, f"starting {name_ranks(range(self.size))}")

    def _settle_launcher(self) -> type[RankSetLauncher]:
        """Wait until the server has imported torch; do without it where a fork of it would not be safe."""
        from .launcher import RankSetLauncher

        if self._server is not None:
            state = self._server.await_torch(START_TIMEOUT)
            if state["threads"] == 1 and not state["cuda"]:
                from .fork_launcher import ForkSetLauncher

                return ForkSetLauncher
            self._server.end()
            self._server = None
            reason = "initialises CUDA" if state["cuda"] else "starts threads"
            self.launcher = SPAWN
            self.how = f"{SENTENCES[SPAWN]}: importing torch {reason} on this machine, and a fork would not be safe."
        return RankSetLauncher

    @property
    def client(self) -> ipp.Client:
        """The notebook's connection to the ranks, which it has until they are stopped."""
        if self._client is None:
            raise RanklabError(f"{self._lost or 'These ranks were stopped.'} world.restart() starts new ones.")
        return self._client

    @property
    def _here(self) -> RankSetLauncher:
        """What has started the ranks on this machine."""
        if self._set is None:
            raise RanklabError("These ranks were not started on this machine.")
        return self._set

    def _environment(self, place) -> dict[str, str]:
        environment = place.environment(self.network.address, self.master_port)
        environment |= self._owned | self._made.environment(place)
        environment |= self.devices[place.rank]
        return {BUFFER: os.environ.get(BUFFER, ENTRIES), **backends.defaults(), **environment}

    def _await(self, ranks: list[int], progress: Progress, doing: str) -> None:
        """Wait until the controller has admitted these ranks."""
        late = overdue(START_TIMEOUT, pids := [self._controller.pid, *map(self.pid, ranks)])
        while not set(ranks) <= set(self.client.ids):
            self._may_still_come(ranks, late)
            progress.now(f"{doing}: {len(self.client.ids)} of {self.size} up")
            time.sleep(POLL)
        greet_all(self.client, ranks, lambda: self._may_still_come(ranks, late), pids)

    def _may_still_come(self, ranks: list[int], late: Callable[[], bool]) -> None:
        """Raise where waiting for these ranks has become useless."""
        self._check_controller()
        dead = [rank for rank in ranks if self.exit_code(rank) is not None]
        if dead or late():
            raise RanklabError(self._why_not(dead))

    def _check_controller(self) -> None:
        """Notice that a scheduler has died, which ipyparallel does not: ranks would never get what is sent to them.

        ipyparallel chooses the ports of its schedulers first and binds them later, in other processes. Except on Linux
        (``controller.hold_ports``) another program may take one in between.
        """
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + CHECK_EVERY
        if not controller_runs(self._cluster, thorough=True):
            why = last_line(self._controller) or "Start again."
            raise StartLost(f"A part of ipyparallel's controller ended while it started. {why}")

    def _why_not(self, dead: list[int]) -> str:
        if not dead:
            up = name_ranks(self.client.ids) if self.client.ids else "none"
            return f"Not all ranks came up within {START_TIMEOUT:g} s (up: {up}). Is the machine overloaded?"
        return f"{name_ranks(dead)} ended while starting: {last_line(self._here.ranks[dead[0]]) or 'no output'}"

    def alive(self) -> list[int]:
        """Return the ranks whose processes run."""
        known = set(self.client.ids)
        return [rank for rank in range(self.size) if rank in known and self.exit_code(rank) is None]

    def exit_code(self, rank: int) -> int | None:
        """Return how the process of a rank ended (−9: killed by signal 9), or None while it runs."""
        return self._here.exit_code(rank)

    def await_exit_code(self, rank: int, patience: float = EXIT_STATUS) -> int | None:
        """Return how a process that has died ended, or None where the system does not hand it out in time."""
        _poll(lambda: self.exit_code(rank) is not None, patience)
        return self.exit_code(rank)

    def pid(self, rank: int) -> int:
        """Return the process id of a rank on this machine, 0 where it is on another."""
        return self._set.ranks[rank].pid if self._set is not None else 0

    def new_master_port(self) -> int:
        """Reserve another port for rank 0: the old one may still be served by a store that rank 0 keeps alive."""
        return self._made.renew()

    @property
    def master_port(self) -> int:
        """The TCP port on which rank 0 listens."""
        return self._made.port

    def helpers(self) -> list[int]:
        """Return the processes through which the notebook talks to the ranks: controller, schedulers, fork server."""
        return [*family(self._cluster), *([self._server.pid] if self._server is not None else [])]

    def ask(self, rank: int, question: str, timeout: float = ANSWER, more: More | None = None) -> Answer | None:
        """Ask the watchdog of a rank, see :func:`.asking.ask`; a rank that was stopped (SIGSTOP) cannot answer."""
        answer = ask(watchdog_path(self.home, rank), question, timeout, more)
        return RankState(stopped=True) if answer is None and is_stopped(self.pid(rank)) else answer

    def lost(self, thorough: bool = False) -> str:
        """Say in one sentence that the ranks cannot be reached any more, or "" where they can.

        Args:
            thorough: look at each process of the controller, which takes some milliseconds.
        """
        if self._server is not None and self._server.has_ended:
            self._lost = "The process that the ranks were forked from was killed, and the ranks with it."
        elif self._cluster is not None and not controller_runs(self._cluster, thorough):
            self._lost = "The controller, through which the notebook talks to the ranks, was killed."
        elif self.network.lost:
            self._lost = "The process that holds the hosts of the ranks was killed."
        return self._lost

    def signal(self, rank: int, number: int) -> None:
        """Send a signal to the process of one rank; nothing happens where it has ended."""
        if self._set is not None:
            self._set.signal_rank(rank, number)

    def replace(self, ranks: list[int]) -> None:
        """Start a new process in the place of each of these ranks, which have died."""
        with Progress(f"starting {name_ranks(ranks)} again") as progress:
            if not _poll(lambda: not set(ranks) & set(self.client.ids), START_TIMEOUT):
                raise RanklabError(f"{name_ranks(ranks)} died; the controller has not noticed. Use world.restart().")
            for rank in ranks:
                self._here.environments[rank]["MASTER_PORT"] = str(self.master_port)
                self._here.start_rank(rank)
            self._await(ranks, progress, f"starting {name_ranks(ranks)} again")

    def stop(self) -> None:
        """End everything that was started. Twice is fine."""
        try:
            self._end_processes()
        finally:  # also where the reader presses stop meanwhile
            self.network.close()
            shutil.rmtree(self.home, ignore_errors=True)

    def _end_processes(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        helpers = []
        # Ranks hold nothing that needs an orderly end, and a rank stuck in a collective ignores SIGTERM.
        if self._server is not None:
            self._server.end()  # ends what the ranks have started too
            self._server = None
        elif self._set is not None:
            helpers = self._set.children()
            for rank in range(self.size):
                self.signal(rank, signal.SIGKILL)
        if self._cluster is not None:
            kill_controller(self._cluster)
            self._cluster.stop_cluster_sync()
            self._cluster = None
        if helpers:
            from .launcher import end_all

            end_all(helpers, patience=0.2)  # nannies would wait 3 s for a controller that has gone


def _poll(condition: Callable[[], bool], patience: float) -> bool:
    deadline = time.monotonic() + patience
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(POLL)
    return met
