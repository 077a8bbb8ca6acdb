"""A launcher for ipyparallel whose engines are ranks forked from one process that has imported torch.

Registered as ``ranklab`` in the group ``ipyparallel.engine_launchers``, so that ``ipp.Cluster(engines="ranklab")``
works without the rest of this package. From outside it behaves as ipyparallel's ``LocalEngineSetLauncher``.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from traitlets import Any, Integer, Unicode

from ..layout import LOOPBACK, places
from ..system.backends import interfaces
from ..system.deadman import HOME
from ..system.ports import reserve_port
from .forking import Fork, Server
from .launcher import RankLauncher, RankSetLauncher

# The server is the nanny of all its ranks; ipyparallel would start one more process for every engine.
NO_NANNY = "--IPEngine.enable_nanny=False"


class ForkLauncher(RankLauncher):
    """One rank, forked by the server of its set."""

    fork: Fork | None = None

    @property
    def exit_code(self) -> int | None:
        """None while the process runs; its exit status afterwards, −9 where signal 9 killed it."""
        return self.fork.exit_code if self.fork is not None else None

    def start(self) -> Fork:
        """Ask the server for the process; its id is known when the server has answered."""
        self.fork = self.parent.server.fork(
            environment=self.get_env(),
            argv=[*self.cluster_args, *self.engine_args, NO_NANNY],
            log=self.output_file,
            cwd=self.work_dir,
            engine=self.parent.only_engine(self),
        )
        loop = self.loop  # looked up here: the callbacks run in the thread that listens to the server
        self.notify_start(self.fork)
        self.fork.pid.add_done_callback(self._forked)
        self.fork.ended.add_done_callback(lambda _: self._tell_ended(loop))
        return self.fork

    def _tell_ended(self, loop) -> None:
        """Notify in the event loop; here, in the server's thread, where no loop runs (``start_cluster_sync``)."""
        if loop.asyncio_loop.is_running():
            loop.add_callback(self._ended)
        else:
            self._ended()

    def _forked(self, pid) -> None:
        if pid.exception() is None:
            self.pid = pid.result()

    def _ended(self) -> None:
        self.notify_stop({"exit_code": self.exit_code, "pid": self.pid, "identifier": self.identifier})

    def signal(self, sig: int) -> None:
        """Send a signal through the server, which knows whether the process id still is this process's."""
        if self.fork is None:  # made by from_dict
            super().signal(sig)
        elif self.exit_code is None:
            self.parent.server.signal(self.fork, sig)

    async def join(self, timeout: float | None = None) -> None:
        """Wait until the process has ended.

        Raises:
            TimeoutError: it has not, within ``timeout`` seconds.
        """
        if self.fork is None:
            return await super().join(timeout)
        await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self.fork.ended)), timeout)
        return None

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        return super().poll() if self.fork is None else self.exit_code


class ForkSetLauncher(RankSetLauncher):
    """Starts ranks by forking one process that has imported torch.

    Attributes:
        server: the fork server; where none is given the set starts its own, which ends with its last rank.
    """

    launcher_class = ForkLauncher
    server = Any(help="The fork server.")
    server_pid = Integer(-1).tag(to_dict=True)
    home = Unicode(help="Private folder of this set, where it has made one.").tag(to_dict=True)
    _port = None

    async def start(self, n: int) -> list[int]:
        """Fork ranks 0 … n − 1.

        Returns:
            The process id of each rank, in rank order.

        Raises:
            RanklabError: torch cannot be imported, or the system refused a process.
        """
        self.n = n
        if not self.environments:
            self._stand_alone()
        self.server_pid = self.server.pid
        forks = [self.start_rank(rank) for rank in range(n)]
        try:
            pids = [await asyncio.wrap_future(fork.pid) for fork in forks]
        except BaseException:
            self._finish()
            raise
        self.notify_start(pids)
        return pids

    def only_engine(self, launcher: ForkLauncher) -> int | None:
        """Return the id that the hub will give this rank, where no other engine can have it."""
        return int(launcher.identifier) if not self.home else None

    def _stand_alone(self) -> None:
        """Make what the rest of ranklab would have given: a folder, a port, environments and a server."""
        self.home = tempfile.mkdtemp(prefix="ranklab-")
        self._port = reserve_port()
        port = self._port.getsockname()[1]
        common = {HOME: self.home}
        common |= {name: os.environ.get(name, value) for name, value in interfaces(LOOPBACK).items()}
        self.environments = [place.environment("127.0.0.1", port) | common for place in places([self.n])]
        log = Path(self.home, "fork-server.log")
        self.server = Server({HOME: self.home, **self.environment}, log, outlive=True)

    async def stop(self) -> None:
        """End all ranks, and the server where it is this set's own."""
        await super().stop()
        self._finish()

    def notify_stop(self, data: dict) -> dict:
        """Say that the last rank has ended."""
        self._finish()
        return super().notify_stop(data)

    def _finish(self) -> None:
        if self.home:
            if self.server is not None:
                self.server.end()
            if self._port is not None:
                self._port.close()
            shutil.rmtree(self.home, ignore_errors=True)
