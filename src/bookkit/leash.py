"""No process outlives the one that started it.

``follow_parent`` ends this process when its parent is gone. ``python -m bookkit.leash MODULE …``
runs another program like that. ``Brood`` finds what a kernel started and left behind, also when
nobody is left to look: then its guard does.
"""

import importlib
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager

import psutil

POLL_SECONDS = 0.5
GRACE_SECONDS = 15
LEAVE_SECONDS = 5
HURRY_SECONDS = 3  # where the work has failed or was stopped anyway
GUARD = "--guard"


def follow_parent():
    """End this process when the process that started it ends, even by SIGKILL.

    It gets the SIGTERM that Ctrl-C's handlers also know, so that a kernel is shut down in order;
    after ``GRACE_SECONDS`` it ends the hard way. Polling is what works on every system.
    """
    parent = os.getppid()
    threading.Thread(target=_watch, args=(parent,), name="follow-parent", daemon=True).start()


def _watch(parent):
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


class Brood:
    """All processes that descend from one kernel, found by a mark in their environment.

    Parenthood would not do: ranks live in sessions of their own, and a process whose parent has
    ended belongs to process 1.
    """

    MARK = "BOOKKIT_BROOD"

    def __init__(self, token=None):
        self._token = token or uuid.uuid4().hex

    @contextmanager
    def guarded(self):
        """Within it a second process waits for this one to be killed, and then ends the brood.

        A kernel notices its parent's death itself, and ranks that of their kernel, but only while
        each can run its own watching thread; the guard depends on none of them.
        """
        command = [sys.executable, "-m", "bookkit.leash", GUARD, str(os.getpid()), self._token]
        # In a session of its own: Ctrl-C is for us, the guard's hour comes later.
        guard = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            yield
        finally:
            guard.kill()
            guard.wait()

    @property
    def environment(self):
        """What to add to the kernel's environment so that its descendants can be found."""
        return {self.MARK: self._token}

    def alive(self):
        """The descendants that are running now."""
        return [process for process in psutil.process_iter() if self._marked(process)]

    def survivors(self, seconds):
        """Wait up to ``seconds`` for all to leave; return those that did not."""
        psutil.wait_procs(self.alive(), timeout=seconds)
        return self.alive()

    def end(self):
        """Kill whatever is left, and whatever that starts meanwhile; return the command lines."""
        ended: dict[int, str] = {}
        while left := self.alive():
            for process in left:
                ended.setdefault(process.pid, command_line(process))
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
            psutil.wait_procs(left, timeout=5)
        return list(ended.values())

    def _marked(self, process):
        try:
            return process.environ().get(self.MARK) == self._token
        except (psutil.Error, OSError):
            return False  # gone meanwhile, or another user's: in both cases none of ours


def command_line(process):
    """A process in words, for an error message."""
    try:
        return " ".join(process.cmdline()) or process.name()
    except psutil.Error:
        return "a process that has ended meanwhile"


def guard(parent, token):
    """Wait until the process ``parent`` is gone, give its brood time to leave, and end the rest."""
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    brood = Brood(token)
    brood.survivors(HURRY_SECONDS)
    brood.end()


def main():
    """Run the module, or ``module:function``, that the command line names first."""
    sys.argv = sys.argv[1:]
    if not sys.argv:
        sys.exit("Name the module to run: python -m bookkit.leash MODULE …")
    if sys.argv[0] == GUARD:
        return guard(int(sys.argv[1]), sys.argv[2])
    follow_parent()
    module, _, function = sys.argv[0].partition(":")
    if function:
        sys.exit(getattr(importlib.import_module(module), function)())
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
