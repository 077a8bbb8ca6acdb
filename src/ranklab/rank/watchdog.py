"""The watchdog: a thread in each rank that answers while the rank itself is busy or stuck.

It listens on a Unix socket in the world's private folder, so no port is open and no other user can ask. It knows
where the rank is (the cell's line, the library call it is in, the collectives it has called), and how to cut the
connections to other ranks, which ends any wait in a collective with an error while variables stay.

Runs inside a rank. Standard library only.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..state import Answer, Pulse, RankState, write
from . import drain, queued
from .cut import connections, cut
from .pulse import at_work, carried, switches
from .recorder import calls, collectives, date_groups, groups
from .trace import position


class Watchdog:
    """Answers questions about this process from a thread of its own.

    Args:
        path: where to listen; None on another machine, where nobody could ask.

    Attributes:
        answers: what it answers to each of :data:`ranklab.state.QUESTIONS`.
        notebook_connections: inode numbers of the connections to the notebook, known once the rank has settled.
    """

    def __init__(self, path: Path | None) -> None:
        self._rank_thread, self._native = threading.get_ident(), threading.get_native_id()
        self._cell_began: float | None = None
        self._cell_since = 0  # nanoseconds
        self._calls = 0
        self.notebook_connections: set[int] = set()
        self.answers: dict[str, Callable[[], Answer]] = {
            "where": self.where,
            "pulse": self.pulse,
            "cell": self.cell,
            "cut": self.cut,
        }
        if path is None:
            return
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.unlink(missing_ok=True)
        self._server.bind(str(path))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True, name="watchdog").start()

    def watch(self, shell) -> None:
        """Follow the cells of a shell.

        Args:
            shell: the rank's IPython shell.
        """
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    def settle(self) -> None:
        """Take what is connected now for the notebook's own, never to be cut; nothing of the reader's has run yet."""
        self.notebook_connections = {inode for inode, _ in connections()}

    def _begin(self, *_) -> None:
        self._cell_began, self._cell_since = time.monotonic(), time.time_ns()
        date_groups()
        self._calls = calls()

    def _end(self, *_) -> None:
        self._cell_began = None

    def _serve(self) -> None:
        while True:
            connection, _ = self._server.accept()
            with connection, contextlib.suppress(OSError):  # whoever asked may have gone
                answer = self.answers.get(connection.recv(16).decode(errors="replace"))
                if answer is not None and not _has_gone(connection):
                    connection.sendall(write(_told(answer)))

    def where(self) -> RankState:
        """Return what the rank is doing."""
        state = position(sys._current_frames().get(self._rank_thread))
        began = self._cell_began
        state = replace(
            state,
            busy=began is not None or bool(state.lines),
            seconds=time.monotonic() - began if began is not None else 0.0,
            pulse=self.pulse(),
            groups=groups(),
            collectives=collectives(self._cell_since),
            draining=drain.waits(),
        )
        return queued.explain(state, self._cell_since)

    def pulse(self) -> Pulse:
        """Return counts that stand still while the rank waits."""
        return Pulse(calls() + queued.progress(), switches(self._native), at_work(self._native), carried())

    def cut(self) -> int:
        """End every wait of this rank, see :func:`ranklab.rank.cut.cut`."""
        return cut(self.notebook_connections)

    def has_called(self) -> bool:
        """Say whether the latest cell has called collectives on the present groups."""
        return calls() != self._calls

    def cell(self) -> RankState:
        """Return the groups, and the collectives that the latest cell has called on them."""
        if not self.has_called():
            return RankState()
        recent = [called for called in collectives(self._cell_since) if called.recent]
        return RankState(groups=groups(), collectives=recent)


def _has_gone(connection: socket.socket) -> bool:
    """Say whether who has asked has given up: on a busy machine the next one would wait for that answer, too."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


def _told(answer: Callable[[], Answer]) -> Answer | None:
    """Return an answer; an error is printed and answered with None, for a rank without watchdog cannot be freed."""
    try:
        return answer()
    except Exception:
        traceback.print_exc()
        return None
