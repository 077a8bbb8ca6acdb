"""The notebook's end of the fork server: start it, ask it for ranks, hear how they end.

Standard library only, so that the server can begin to import torch before the notebook imports ipyparallel.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import Future, InvalidStateError, wait
from pathlib import Path

from ..errors import RanklabError
from ..system.deadman import OWNER
from ..system.patience import overdue
from ..system.pipes import piped

SERVER_CMD = [sys.executable, "-m", "ranklab.engines.forkserver"]
END_PATIENCE = 2.0
POLL = 0.01


class Fork:
    """One process that the server was asked for.

    Attributes:
        pid: a future of its process id; raises RanklabError where it could not be forked.
        ended: a future of its exit status, −9 where signal 9 killed it.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid: Future[int] = Future()
        self.ended: Future[int] = Future()

    @property
    def exit_code(self) -> int | None:
        """None while it runs or waits to be forked; its exit status afterwards."""
        return self.ended.result() if self.ended.done() else None


class Server:
    """A running fork server.

    Args:
        environment: added to this process's environment.
        log: file that gets what the server writes to its standard error.

    Attributes:
        ready: a future of what the server says about itself; raises RanklabError where it cannot import what ranks
            need.
    """

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self.ready: Future[dict] = Future()
        self._numbers = itertools.count()
        self._forks: dict[int, Fork] = {}
        self._lock = threading.Lock()
        self._log = log
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(
                SERVER_CMD,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, OWNER: str(os.getpid()), **environment},
                start_new_session=True,  # a Ctrl-C in the terminal is not for ranks
            )
        self._listener = threading.Thread(target=self._listen, daemon=True, name="fork-server")
        self._listener.start()

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the server's process has ended."""
        return self._process.poll() is not None

    def await_torch(self, patience: float) -> dict:
        """Return what the server says about itself once it has imported torch.

        Args:
            patience: seconds to wait, in which it could run.

        Raises:
            RanklabError: it takes longer, or the server cannot import what ranks need.
        """
        late = overdue(patience, [self.pid])
        # A result() with a timeout would raise TimeoutError, which is an OSError: "the system refused" nothing here.
        while not wait([self.ready], timeout=POLL).done:
            if late():
                told = f"Importing torch has taken more than {patience:g} s."
                raise RanklabError(f"{told} Is the environment on a slow or network drive?")
        return self.ready.result()

    def fork(self, environment: dict[str, str], argv: list[str], log: str, engine: int, cwd: str = "") -> Fork:
        """Ask for a process; does not wait for it.

        Args:
            environment: the whole environment of the process.
            argv: arguments of the engine.
            log: file for its standard output and error.
            engine: the id it will ask ipyparallel's hub for, where no other engine has it.
            cwd: its working folder; by default this process's.
        """
        fork = Fork(next(self._numbers))
        self._forks[fork.number] = fork
        request = {
            "fork": fork.number,
            "environment": environment,
            "argv": argv,
            "log": os.path.abspath(log),
            "cwd": os.path.abspath(cwd or os.getcwd()),
            "engine": engine,
        }
        if not self._send(request):
            self._lose(fork)
        return fork

    def signal(self, fork: Fork, number: int) -> None:
        """Send a signal to a process; nothing happens where it has ended. SIGKILL ends its whole group."""
        self._send({"signal": fork.number, "number": int(number)})

    def end(self) -> None:
        """End the server and every process it has forked. Twice is fine."""
        if self._process.poll() is None:
            if self.ready.done() and self._send({"end": True}):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(END_PATIENCE)
            if self._process.poll() is None:  # still importing, so it has no children; or stopped
                self._process.kill()
                self._process.wait()
        if self._listener is not threading.current_thread():
            self._listener.join(END_PATIENCE)
        with self._lock, contextlib.suppress(OSError):  # the pipe is broken where the server has died
            piped(self._process.stdin).close()

    def _send(self, request: dict) -> bool:
        try:
            with self._lock:
                requests = piped(self._process.stdin)
                requests.write(json.dumps(request).encode() + b"\n")
                requests.flush()
        except (OSError, ValueError):  # the server has gone, or was ended
            return False
        return True

    def _listen(self) -> None:
        with piped(self._process.stdout) as reports:
            for line in reports:
                self._hear(json.loads(line))
        status = self._process.wait()
        _fail(self.ready, f"The process that makes the ranks ended with status {status}. {self._last_words()}")
        for fork in list(self._forks.values()):
            self._lose(fork)

    def _hear(self, report: dict) -> None:
        if "forked" in report:
            self._forks[report["forked"]].pid.set_result(report["pid"])
        elif "exited" in report:
            self._forks.pop(report["exited"]).ended.set_result(report["code"])
        elif "refused" in report:
            fork = self._forks.pop(report["refused"])
            fork.pid.set_exception(RanklabError(f"A rank could not be started: {report['why']}."))
            fork.ended.set_result(1)
        elif "ready" in report:
            self.ready.set_result(report["ready"])
        elif "failed" in report:
            _fail(self.ready, f"The ranks cannot import what they need: {report['failed']}")

    def _lose(self, fork: Fork) -> None:
        """A process whose server has gone ends itself; nobody is left to tell how."""
        cause = self.ready.exception() if self.ready.done() else None
        _fail(fork.pid, str(cause or "The process that makes the ranks has ended. Use world.restart()."))
        with contextlib.suppress(InvalidStateError):
            fork.ended.set_result(-9)

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self._log.read_text(errors="replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""


def _fail(future: Future, sentence: str) -> None:
    with contextlib.suppress(InvalidStateError):  # it was answered before
        future.set_exception(RanklabError(sentence))
