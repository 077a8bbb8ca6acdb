"""Ranks started by ipyparallel's own launchers: mpiexec, Slurm, ssh; on this machine or on others.

Same face as :class:`.Processes`. What needs this machine is missing: no rank is replaced alone, and
a hang on another machine costs the variables of the ranks that are stuck.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from ipyparallel.cluster.launcher import SSHEngineLauncher, SSHEngineSetLauncher, find_launcher_class

from ..errors import RanklabError
from ..layout import IMPATIENT, LOOPBACK, name_ranks
from ..rank.errands import free_port, take_place, where_am_i
from ..rank.recorder import BUFFER, ENTRIES
from ..system import backends
from ..system.deadman import HOME, OWNER
from ..system.gpus import ENGINES
from ..system.leftovers import make_home
from ..system.refused import no_more
from .controllers import connect, last_line, make_cluster
from .devices import choose_backend_elsewhere
from .greeting import greet_all
from .launcher import CONTROLLER_CMD
from .processes import Processes
from .progress import Progress

ENGINE_TIMEOUT = 300.0  # a job may have to wait in a queue


class RankSSHLauncher(SSHEngineLauncher):
    """An engine started over ssh that is told its rank: the order of the hosts decides."""

    def start(self, **where: Any):
        """Start the engine on a host, as ipyparallel does."""
        rank = len(self.parent.launchers) - 1  # this launcher has been entered already
        self.environment = {**self.parent.environment, "RANKLAB_SSH_RANK": str(rank)}
        return super().start(**where)


class RankSSHSetLauncher(SSHEngineSetLauncher):
    """ipyparallel's engines over ssh, numbered host by host."""

    launcher_class = RankSSHLauncher


class Elsewhere(Processes):
    """Controller here, ranks where ipyparallel's launcher puts them.

    Args:
        size: number of ranks.
        engines: "slurm", "ssh" or "mpi".
        hosts: for ssh, the ranks of each host: ``{"computer1": 2, "computer2": 1}``.
        address: an address of this machine that the hosts can reach; encryption is on then. Without it everything
            stays on the loopback interface, so only hosts that are this machine can take part.
        options: further traits of ipyparallel's launcher, for example ``{"queue": "debug"}``.
        backend: what the ranks shall talk over, None for what is right there.

    Raises:
        RanklabError: the ranks did not come up.
    """

    devices = ()  # what its ranks see is set by the other launcher

    def __init__(
        self,
        size: int,
        engines: str,
        hosts: Mapping[str, int] | None = None,
        address: str = "",
        options: Mapping[str, Any] | None = None,
        backend: str | None = None,
    ) -> None:
        self._asked = backend
        self.size = sum(hosts.values()) if hosts else size
        self.launcher = engines
        self.how = f"Ranks are started by ipyparallel's {engines} launcher, and each imports torch for itself."
        self._options = dict(options or {}) | ({"engines": dict(hosts)} if hosts else {})
        self._address = address
        self._server = self._set = self._cluster = self._client = None
        self._next_check, self._lost = 0.0, ""
        try:
            self.home = make_home()
        except OSError as error:
            raise RanklabError(no_more(error)) from error
        if engines == "slurm":  # ipyparallel would leave its batch script in the reader's folder
            self._options.setdefault("batch_file_name", str(self.home / "engines.sbatch"))
        self._owned = {OWNER: str(os.getpid()), HOME: str(self.home), "IPYTHONDIR": str(self.home)}
        try:
            with Progress("starting ipyparallel's controller") as progress:
                self._bring_up(engines, progress)
        except BaseException:
            self.stop()
            raise

    def _bring_up(self, engines: str, progress: Progress) -> None:
        self._cluster = make_cluster(self.home)
        if self._address:
            self._cluster.controller_ip = self._address
            self._cluster.controller_args = [*self._cluster.controller_args, "--IPController.enable_curve=True"]
        self._cluster.start_controller_sync(controller_cmd=CONTROLLER_CMD, environment=self._owned)
        self._client = connect(self._cluster, self.home)
        launcher = RankSSHSetLauncher if engines == "ssh" else find_launcher_class(engines, "engine")
        self._cluster.engine_launcher_class = launcher
        environment = {HOME: str(self.home), "IPYTHONDIR": str(self.home), ENGINES: engines}
        if path := os.environ.get("PYTHONPATH"):
            environment["PYTHONPATH"] = path
        command = [self._options.get("remote_python", sys.executable), "-m", "ranklab.rank.engine"]
        engine_set = self._cluster.start_engines_sync(
            self.size, engine_cmd=command, environment=environment, **self._options
        )
        self._engines = self._cluster.engines[engine_set]
        self._await_all(progress)
        self._lay_out()

    def _await_all(self, progress: Progress) -> None:
        deadline = time.monotonic() + ENGINE_TIMEOUT

        def late() -> bool:
            return time.monotonic() > deadline

        everybody = set(range(self.size))
        while not everybody <= set(self.client.ids):
            if strangers := set(self.client.ids) - everybody:
                raise RanklabError(
                    f"An engine has number {min(strangers)}: {self.launcher} gave it no rank below {self.size}."
                )
            self._may_still_come([], late)
            progress.now(f"{self.launcher}: {len(self.client.ids)} of {self.size} up")
            time.sleep(0.05)
        greet_all(self.client, sorted(everybody), lambda: self._may_still_come([], late))

    def _may_still_come(self, ranks: list[int], late: Callable[[], bool]) -> None:
        """Raise where waiting for the ranks has become useless; which of them died is not known here."""
        self._check_controller()
        ended = _has_ended(self._engines)
        if ended or late():
            raise RanklabError(self._why_none(ended))

    def _why_none(self, ended: bool) -> str:
        last = last_line(self._engines) if ended else ""
        up = name_ranks(self.client.ids) if self.client.ids else "none"
        within = "" if ended else f" within {ENGINE_TIMEOUT:g} s"
        return f"{self.launcher} did not bring up {self.size} ranks{within} (up: {up}). {last}".strip()

    def _lay_out(self) -> None:
        """Give every rank torchrun's variables, from the hosts the ranks are really on."""
        from ..system.foreign import read_places

        told = self.client[list(range(self.size))].apply_sync(where_am_i)
        hosts = [host for host, _ in told]
        self.places = read_places(hosts)
        self.backend = choose_backend_elsewhere(self.places, [gpus for _, gpus in told], self._asked)
        self.nodes = tuple(hosts.count(host) for host in dict.fromkeys(hosts))
        self._together = len(self.nodes) == 1
        self._meet_at(*self.client[0].apply_sync(free_port, self._towards()))

    def _towards(self) -> str:
        return "" if self._together else self._address

    def _meet_at(self, host: str, port: int) -> None:
        self._meeting_port = port
        # Names are asked for over a network that may be slow, where the ranks are on several computers.
        ours = [(BUFFER, ENTRIES), *([IMPATIENT] if self._together else [])]
        defaults = {name: os.environ.get(name, value) for name, value in ours} | backends.defaults()
        for place in self.places:
            environment = place.environment(host, port) | backends.environment(self.backend)
            if self._together:
                environment |= backends.interfaces(LOOPBACK)
            self.client[place.rank].apply_sync(take_place, environment, defaults)

    def alive(self) -> list[int]:
        """Return the ranks that the controller hears."""
        return [rank for rank in range(self.size) if rank in self.client.ids]

    def exit_code(self, rank: int) -> int | None:
        """Return None: how a process on another machine ended is not known here."""
        return None

    @property
    def master_port(self) -> int:
        """The TCP port on which rank 0 listens."""
        return self._meeting_port

    def new_master_port(self) -> int:
        """Ask rank 0 for another free port."""
        if 0 in self.client.ids:
            self._meeting_port = self.client[0].apply_sync(free_port, self._towards())[1]
        return self._meeting_port

    def signal(self, rank: int, number: int) -> None:
        """Send a signal through ipyparallel, whose nanny stands beside each rank."""
        if rank in self.client.ids:
            self.client.send_signal(number, targets=[rank], block=False)

    def replace(self, ranks: list[int]) -> None:
        """Say that only all ranks together can be started again."""
        raise RanklabError(
            f"{name_ranks(ranks)} died, and {self.launcher} cannot start one rank alone: world.restart() starts all."
        )

    def stop(self) -> None:
        """End everything that was started. Twice is fine."""
        if self._client is not None:
            if alive := self.alive():
                self._client.send_signal(signal.SIGKILL, targets=alive, block=False)
            self._client.close()
            self._client = None
        if self._cluster is not None:
            self._cluster.stop_cluster_sync()
            self._cluster = None
        shutil.rmtree(self.home, ignore_errors=True)


def _has_ended(launcher: Any) -> bool:
    """Say whether the program that a launcher has started here (mpiexec) has ended; a queue has no program here.

    ipyparallel notes the end in an event loop that does not run between its calls.
    """
    process = getattr(launcher, "process", None)
    return process is not None and not process.is_running()
