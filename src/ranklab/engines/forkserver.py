"""The process that imports torch once and becomes every rank by forking.

Run as ``python -m ranklab.engines.forkserver``. Requests come as JSON lines on its standard input, reports leave as
JSON lines on its standard output; :mod:`.forking` is the other end. While it serves, it has one thread, no ZeroMQ
context and never asks CUDA for anything, so that a fork of it is as good as a fresh process that has just imported
torch. It is also the nanny of its ranks: when one ends it reports how, and tells ipyparallel's hub, as
``ipyparallel/engine/nanny.py`` (9.2) does with one more process for every engine.

Requests: ``{"fork": n, "environment": {…}, "argv": […], "log": path, "cwd": path, "engine": id}``, where n is
any number that was not used before; ``{"signal": n, "number": 9}``; ``{"end": true}``.
Reports: ``{"ready": {…}}`` or ``{"failed": sentence}``; ``{"forked": n, "pid": pid}`` or
``{"refused": n, "why": sentence}``; ``{"exited": n, "code": −9}``.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import selectors
import shutil
import signal
import sys
import traceback
from dataclasses import dataclass

from ..errors import one_line
from ..system.deadman import HOME, OWNER, PERIOD
from .preload import preload

_reports = 1  # where the notebook listens


@dataclass(frozen=True)
class Child:
    """One forked process: its number in the protocol, and how the hub knows it."""

    number: int
    pid: int
    engine: int
    connection: str


class ForkServer:
    """Forks ranks, signals them, and tells how they ended."""

    def __init__(self) -> None:
        self._owner = int(os.environ[OWNER])
        self._children: dict[int, Child] = {}  # by process id
        self._messengers: set[int] = set()
        self._unread = b""
        self._selector = selectors.DefaultSelector()
        self._woken, wake = os.pipe()
        for descriptor in (self._woken, wake):
            os.set_blocking(descriptor, False)
        # A signal that arrives between two looks must not be lost: its number lands in this pipe.
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wake = wake
        self._selector.register(self._woken, selectors.EVENT_READ, self._reap)
        self._selector.register(0, selectors.EVENT_READ, self._read_requests)

    def serve(self) -> None:
        """Serve until told to end, or until the owner has gone; returns with no child left."""
        self._running = True
        while self._running:
            for key, _ in self._selector.select(PERIOD):
                key.data()
            if os.getppid() != self._owner:
                self._running = False
        self._kill_all()

    def _read_requests(self) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            self._selector.unregister(0)
            self._running = False
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "fork" in request:
                self._fork(request)
            elif "signal" in request:
                self._signal(request["signal"], request["number"])
            elif "end" in request:
                self._running = False

    def _fork(self, request: dict) -> None:
        try:
            pid = os.fork()
        except OSError as error:  # no memory or no processes left
            _say({"refused": request["fork"], "why": f"the system refused another process: {error.strerror}"})
            return
        if pid == 0:
            # Whatever happens from here on must not return into the server's loop.
            try:
                self.forget()
                from ..rank import forked

                forked.become_rank(request)
            finally:
                os._exit(1)
        connection = request["environment"].get("IPP_CONNECTION_INFO", "")
        self._children[pid] = Child(request["fork"], pid, request["engine"], connection)
        _say({"forked": request["fork"], "pid": pid})

    def _signal(self, number: int, which: int) -> None:
        # A child that has not been waited for keeps its process id, so this cannot reach a stranger.
        for pid, child in self._children.items():
            if child.number == number:
                # SIGKILL ends what the rank has started as well: nobody would be left to stop it.
                _kill(pid, which, group=which == signal.SIGKILL)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._woken, 512):
                pass
        while self._children:
            try:
                pid = _ended()
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._children:
                _kill_started(pid)
            _, status = os.waitpid(pid, 0)
            self._messengers.discard(pid)
            child = self._children.pop(pid, None)
            if child is not None:
                _say({"exited": child.number, "code": os.waitstatus_to_exitcode(status)})
                self._tell_hub(child)

    def _tell_hub(self, child: Child) -> None:
        """Send a messenger that tells the hub this engine has gone, so that what was asked of it fails at once.

        A process of its own, because a ZeroMQ context has threads, and this process must have none when it forks.
        """
        if not child.connection:
            return  # no engine
        try:
            pid = os.fork()
        except OSError:
            return  # as above: later, but not never
        if pid:
            self._messengers.add(pid)
            return
        try:
            self.forget()
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            from ..rank import forked

            forked.tell_hub(child.engine, child.connection)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)

    def forget(self) -> None:
        """Close what a child must not share with the server."""
        signal.set_wakeup_fd(-1)
        self._selector.close()
        for descriptor in (self._woken, self._wake, _reports):
            os.close(descriptor)

    def _kill_all(self) -> None:
        for pid in self._messengers:
            _kill(pid, signal.SIGKILL, group=False)
            os.waitpid(pid, 0)
        for pid in self._children:
            _kill(pid, signal.SIGKILL, group=True)
        for pid, child in self._children.items():
            _, status = os.waitpid(pid, 0)
            with contextlib.suppress(OSError):  # the owner may have gone
                _say({"exited": child.number, "code": os.waitstatus_to_exitcode(status)})
        if (home := os.environ.get(HOME)) and os.getppid() != self._owner:
            shutil.rmtree(home, ignore_errors=True)  # the owner can no longer do it


def _ended() -> int:
    """Return a child that has ended and was not waited for, so that its number is still its own; 0 where none has."""
    found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return found.si_pid if found else 0


def _kill_started(pid: int) -> None:
    """End what a rank had started that has ended itself: nobody would be left to stop it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it had started nothing
        os.killpg(pid, signal.SIGKILL)


def _kill(pid: int, number: int, group: bool) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended, and will be waited for
        os.kill(pid, number)
    if group:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the child has not made its group yet
            os.killpg(pid, number)


def _say(report: dict) -> None:
    os.write(_reports, json.dumps(report).encode() + b"\n")


def main() -> int:
    """Import, serve, and return the exit status."""
    global _reports
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a reader's Ctrl-C is meant for the cell
    # What an imported module prints, a reader's own of a name that torch imports, is no report.
    _reports = os.dup(1)
    os.dup2(2, 1)
    gc.disable()  # half a million objects that all stay: collecting meanwhile costs an eighth of the import
    try:
        state = preload()
    except BaseException as error:  # a broken installation can raise anything, and the reader must hear of it
        traceback.print_exc()
        _say({"failed": one_line(error)})
        return 1
    # Objects that the collector never looks at again are never written to, so ranks keep sharing their memory.
    gc.freeze()
    gc.enable()
    server = ForkServer()
    _say({"ready": state})
    server.serve()
    return 0


if __name__ == "__main__":
    # Module state must live in ranklab.engines.forkserver, not in a second copy named __main__.
    from ranklab.engines import forkserver

    status = forkserver.main()
    sys.stdout.flush()
    os._exit(status)  # nothing to tidy up, and a second of interpreter shutdown saved
