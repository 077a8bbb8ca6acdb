"""ipyparallel's controller of one world: made, watched and ended.

The controller is a process with a child for each of its schedulers; the ranks and the notebook talk through them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..system.deadman import all_run
from ..system.patience import overdue

if TYPE_CHECKING:
    import ipyparallel as ipp
    import psutil
    from ipyparallel.cluster.launcher import LocalProcessLauncher

# The hub admits an engine at a heartbeat; stock ipyparallel beats every 3 s. The number of misses keeps the time until
# a silent engine counts as lost at a minute, because a busy machine may delay many beats.
HEARTBEAT_MS = 100
HEARTBEAT_MISSES = 600
REGISTRATION = 3600  # seconds until the hub forgets an engine that has not beaten; stock: 30, too few where many start
END_PATIENCE = 1.0
POLL = 0.01
FIRST_WORD = 120.0  # seconds that the controller could have used, until it answers for the first time
QUIET = 50  # above logging.ERROR: what goes wrong is told by the panel, not by ipyparallel's log


def make_cluster(home: Path) -> ipp.Cluster:
    """Return a cluster that keeps everything in one folder; nothing is started yet.

    Args:
        home: the world's private folder.
    """
    import ipyparallel as ipp

    return ipp.Cluster(
        profile_dir=str(home),
        load_profile=False,  # a reader's own ipcluster_config.py must not change the book
        cluster_file="",
        delay=0,
        log_level=QUIET,
        controller_args=[
            f"--HeartMonitor.period={HEARTBEAT_MS}",
            f"--HeartMonitor.max_heartmonitor_misses={HEARTBEAT_MISSES}",
            f"--IPController.registration_timeout={REGISTRATION}",
        ],
    )


def connect(cluster: ipp.Cluster, home: Path) -> ipp.Client:
    """Return a client of a cluster whose controller was started.

    ipyparallel gives the controller ten seconds for its first answer, which are too few on a busy machine: where it
    runs, it is asked again.

    Args:
        cluster: whose controller was started.
        home: the world's private folder.

    Raises:
        TimeoutError: the controller, or a part of it, has ended, or it runs and does not answer.
    """
    late = overdue(FIRST_WORD, family(cluster))
    while True:
        try:
            return cluster.connect_client_sync(ipython_dir=str(home))
        except TimeoutError:
            if late() or not controller_runs(cluster, thorough=True):
                raise


def controller_runs(cluster: ipp.Cluster, thorough: bool = False) -> bool:
    """Say whether the controller runs.

    ipyparallel does not notice that it has died, or one of its schedulers: the ranks would never get what is sent.

    Args:
        cluster: whose controller was started.
        thorough: look at its schedulers as well, which takes some milliseconds.
    """
    controller = cluster.controller
    # os.waitid would say it as well, and Python has it on macOS from 3.13 on only.
    return all_run(controller.pid) if thorough else _runs(controller.process)


def last_line(started: LocalProcessLauncher) -> str:
    """Return the last line that a controller or an engine has printed, which says why it ended, or ""."""
    return "".join(started.get_output().strip().splitlines()[-1:])


def family(cluster: ipp.Cluster | None) -> list[int]:
    """Return the processes of a controller by their ids: its own, then its schedulers'; nothing where it has ended."""
    if cluster is None:
        return []
    import psutil

    try:
        controller = psutil.Process(cluster.controller.pid)
        return [controller.pid, *(scheduler.pid for scheduler in controller.children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def kill_controller(cluster: ipp.Cluster) -> None:
    """Kill the controller's whole group: asked to end while it starts, it leaves its schedulers behind."""
    controller = cluster.controller
    if controller is None or controller.pid <= 0:
        return
    import psutil

    schedulers = []
    with contextlib.suppress(psutil.NoSuchProcess):
        schedulers = psutil.Process(controller.pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all of it has ended
        os.killpg(controller.pid, signal.SIGKILL)
    deadline = time.monotonic() + END_PATIENCE
    while any(map(_runs, schedulers)) and time.monotonic() < deadline:
        time.sleep(POLL)


def _runs(process: psutil.Process) -> bool:
    """Say whether a process has not ended; one that nobody has waited for yet has."""
    import psutil

    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
