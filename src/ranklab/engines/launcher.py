"""How the ranks' processes start: a launcher for ipyparallel that gives every engine its own environment.

Stock ipyparallel starts a set of engines that share one environment, so no engine can know its rank.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
from collections.abc import Awaitable

import psutil
from ipyparallel.cluster.launcher import LocalEngineLauncher, LocalEngineSetLauncher
from traitlets import Dict, List, default

CONTROLLER_CMD = [sys.executable, "-m", "ranklab.engines.controller"]
ENGINE_CMD = [sys.executable, "-m", "ranklab.rank.engine"]


class RankLauncher(LocalEngineLauncher):
    """Starts the process of one rank and knows at once how it ended."""

    _ended_with: int | None = None

    @property
    def exit_code(self) -> int | None:
        """None while the process runs; its exit status afterwards, −9 where signal 9 killed it."""
        return self._ended_with

    def _wait(self) -> None:
        """Wait for the process in a thread, as the stock launcher does.

        The stock launcher hands the exit status to the kernel's event loop, which does not run while a cell waits.
        """
        if self._popen_process is None:  # made by from_dict: not our child
            return super()._wait()
        self._ended_with = self._popen_process.wait()
        stop_data = {"exit_code": self.exit_code, "pid": self.pid, "identifier": self.identifier}
        return self.loop.add_callback(lambda: self.notify_stop(stop_data))


class RankSetLauncher(LocalEngineSetLauncher):
    """Starts one process a rank, each with its own environment, all at once.

    ipyparallel's own set launcher is followed except that it hands the same ``environment`` to every engine and
    waits between two starts.
    """

    launcher_class = RankLauncher
    ranks = Dict(help="The launcher of each rank, also after its process has ended.")
    environments = List(Dict(), help="Environment variables of each rank, in rank order.")
    inherited = Dict(help="This process's environment when the set started: a rank replaced later gets the same.")

    @default("inherited")
    def _present_environment(self) -> dict[str, str]:
        # IPP_*: a notebook may itself be an engine; its own connection is not for its ranks.
        return {name: value for name, value in os.environ.items() if not name.startswith("IPP_")}

    def start(self, n: int) -> list | Awaitable[list]:  # ipyparallel awaits what can be awaited
        """Start the processes of ranks 0 … n − 1.

        Returns:
            What each rank's launcher returned, in rank order.
        """
        self.n = n
        started = [self.start_rank(rank) for rank in range(n)]
        self.notify_start(started)
        return started

    def start_rank(self, rank: int):
        """Start the process of one rank, also in the place of one that has died."""
        identifier = str(rank)
        launcher = self.launchers[identifier] = self.ranks[rank] = self.launcher_class(
            work_dir=self.work_dir,
            parent=self,
            log=self.log,
            profile_dir=self.profile_dir,
            cluster_id=self.cluster_id,
            environment={**self.inherited, **self.environment, **self.environments[rank]},
            identifier=identifier,
            output_file=os.path.join(self.profile_dir, "log", f"rank-{self.engine_set_id}-{rank}.log"),
        )
        launcher.engine_cmd = list(ENGINE_CMD)
        launcher.engine_args = [*copy.deepcopy(self.engine_args), f"--IPEngine.id={rank}"]
        launcher.on_stop(lambda data: self._notice_rank_stopped(launcher, data))
        return launcher.start()

    def _notice_rank_stopped(self, launcher, data: dict) -> None:
        """Forget a rank that has ended, unless another process stands in its place already.

        ipyparallel is told in the event loop, which may run only after the rank was replaced: it would forget the new
        launcher, and fail with a KeyError when that one ends (_notice_engine_stopped in cluster/launcher.py, 9.2).
        """
        if self.launchers.get(data["identifier"]) is launcher:
            self._notice_engine_stopped(data)

    def signal_rank(self, rank: int, sig: int) -> None:
        """Send a signal to the process of one rank; nothing happens where it has already ended."""
        if self.exit_code(rank) is None:
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended between the question and the signal
                self.ranks[rank].signal(sig)

    def children(self) -> list[psutil.Process]:
        """Return the processes that the ranks have started: ipyparallel's nannies, a reader's data loaders."""
        found = []
        for launcher in self.ranks.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                found += psutil.Process(launcher.pid).children(recursive=True)
        return found

    def exit_code(self, rank: int) -> int | None:
        """Return how the process of a rank ended (−9: killed by signal 9), or None while it runs."""
        return self.ranks[rank].exit_code


def end_all(processes: list[psutil.Process], patience: float = 2.0) -> None:
    """Wait until these processes have ended by themselves, then kill those that have not.

    Args:
        processes: what should end now that its parent has.
        patience: seconds to wait.
    """
    for process in psutil.wait_procs(processes, timeout=patience)[1]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
