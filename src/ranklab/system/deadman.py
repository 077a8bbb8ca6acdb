"""The dead man's switch: no process of ours outlives its owner.

A notebook kernel can end without a chance to clean up (``kill -9``, a crash, a test runner that is in a hurry). The
processes we start watch the one that started them and end themselves when it is gone. Pure standard library.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time

OWNER = "RANKLAB_OWNER"
HOME = "RANKLAB_HOME"
PERIOD = 0.5


def watch_owner(period: float = PERIOD) -> threading.Thread:
    """End this process, and its process group, as soon as its parent has gone.

    The parent's process id comes from the environment variable ``RANKLAB_OWNER``, so that a parent which died
    before this call is noticed too. The group is killed because a controller has children of its own.

    Args:
        period: seconds between two looks at the parent.

    Returns:
        The daemon thread that watches.
    """
    owner = int(os.environ[OWNER])

    def watch() -> None:
        while os.getppid() == owner:
            time.sleep(period)
        # Nobody is left to stop us in an orderly way, and nobody is left to read what we would say.
        if home := os.environ.get(HOME):
            shutil.rmtree(home, ignore_errors=True)
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)

    thread = threading.Thread(target=watch, daemon=True, name="watch-owner")
    thread.start()
    return thread


def all_run(pid: int) -> bool:
    """Say whether a process and all of its children run.

    Args:
        pid: the process.
    """
    import psutil

    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return all(member.status() != psutil.STATUS_ZOMBIE for member in family)
    except psutil.NoSuchProcess:
        return False


def is_stopped(pid: int) -> bool:
    """Say whether a process was stopped by SIGSTOP or a terminal, and not continued.

    Args:
        pid: the process; 0 for one that is not on this machine.
    """
    import psutil

    try:
        return pid > 0 and psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False
