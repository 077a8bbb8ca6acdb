"""A launcher for ipyparallel whose engines are ranks forked from one process that has imported torch.

To ipyparallel it behaves as its ``LocalEngineSetLauncher``.
"""

from __future__ import annotations

import asyncio

from traitlets import Any

from .forking import Fork
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
            engine=int(self.identifier),  # no other engine has it: the controller is this world's alone
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
        if self.exit_code is None:
            self.parent.server.signal(self.fork, sig)

    async def join(self, timeout: float | None = None) -> None:
        """Wait until the process has ended.

        Raises:
            TimeoutError: it has not, within ``timeout`` seconds.
        """
        if self.fork is not None:  # else there is no process to wait for
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self.fork.ended)), timeout)

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        return self.exit_code


class ForkSetLauncher(RankSetLauncher):
    """Starts ranks by forking one process that has imported torch.

    Attributes:
        server: the fork server.
    """

    launcher_class = ForkLauncher
    server = Any(help="The fork server.")

    async def start(self, n: int) -> list[int]:
        """Fork ranks 0 … n − 1.

        Returns:
            The process id of each rank, in rank order.

        Raises:
            RanklabError: torch cannot be imported, or the system refused a process.
        """
        self.n = n
        forks = [self.start_rank(rank) for rank in range(n)]
        pids = [await asyncio.wrap_future(fork.pid) for fork in forks]
        self.notify_start(pids)
        return pids
