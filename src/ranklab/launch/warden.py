"""A program that runs another one and leaves nothing of it behind.

``python -I warden.py FOLDER COMMAND …`` runs the command and ends with its exit status. It ends early, and with it
every process that descends from it, when its standard input closes: the notebook holds the other end of that pipe,
so closing it is how a run is stopped, and the kernel of the system closes it when the notebook is killed.

torchrun gives every rank a session of its own, so that no process group holds them all; a torchrun that is killed
leaves its ranks running. Here they have one ancestor that stays (PR_SET_CHILD_SUBREAPER). It imports nothing of ranklab
and of other packages psutil alone, because it runs beside every torchrun and has to start at once.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time

import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LINUX = sys.platform == "linux"
LOOK = 0.5
GIVE_UP = 4.0


def main(folder: str, command: list[str]) -> None:
    """Run the command until it ends, the input closes or SIGTERM comes; then end what is left of it.

    Args:
        folder: removed where the owner of the run has gone and nobody is left to read it.
        command: the program and its arguments.
    """
    if LINUX:
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
    # A child that ends, and SIGTERM, wake the select below through this pipe.
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    stopped = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: stopped.append(number))
    owner = os.getppid()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_follow if LINUX else None)
    gone = False
    while process.poll() is None and not stopped and not gone:
        ready, _, _ = select.select([0, awake], [], [], LOOK)
        if awake in ready:
            os.read(awake, 4096)
            _reap(process.pid)
        gone = (0 in ready and not os.read(0, 4096)) or os.getppid() != owner
    end_descendants()
    process.wait()
    if os.getppid() != owner:
        shutil.rmtree(folder, ignore_errors=True)
    _end_as(process.returncode)


def end_descendants() -> None:
    """Kill every process that descends from this one, until there is none.

    One that is inside a call of the system which nothing interrupts, a broken disk say, is given up on.
    """
    end = time.monotonic() + GIVE_UP
    while (family := _running()) and time.monotonic() < end:
        for process in family:
            with contextlib.suppress(psutil.Error):  # it has ended by itself, or has become another user's
                process.kill()
        select.select([], [], [], 0.01)  # the system takes a moment to end what was killed


def _running() -> list[psutil.Process]:
    """Return the processes below this one, without those that have ended and wait to be reaped."""
    return [each for each in psutil.Process().children(recursive=True) if not _has_ended(each)]


def _has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _reap(keep: int) -> None:
    """Collect adopted processes that have ended; the command's own status is left to its Popen."""
    for child in psutil.Process().children():
        if child.pid != keep:
            with contextlib.suppress(ChildProcessError):  # not ours any more
                os.waitpid(child.pid, os.WNOHANG)


def _follow() -> None:
    """End the command where this program is killed; torchrun ends its ranks on SIGTERM."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _end_as(status: int) -> None:
    """End in the way the command ended, so that the notebook sees the signal."""
    if status >= 0:
        sys.exit(status)
    if status != -signal.SIGKILL:  # which has no handler to take back
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
