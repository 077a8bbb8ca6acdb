"""What a rank prints: Python's streams with a limit, and what compiled code writes to the process's own.

ipykernel reads descriptors 1 and 2 back through a pipe inside the same process, so the last words of a process that
aborts (``terminate called after throwing an instance of …``) are lost with it. Here they go to files in the world's
private folder: the notebook gets them at the end of each cell, and still after a death. Runs inside a rank.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from pathlib import Path

from ipykernel.iostream import OutStream

from ..system.backends import without_chatter
from ..system.home import native_path, read

LIMIT = 1_000_000  # characters of one stream and cell; a panel shows far fewer
TAIL = 10_000


class RankStream(OutStream):
    """A stream to the notebook that does not drown it: after a million characters only the last ones are kept."""

    def __init__(self, session, pub_thread, name, *arguments, **options) -> None:
        super().__init__(session, pub_thread, name, *arguments, **{**options, "watchfd": False})
        self._owner = os.getpid()
        self._room = LIMIT
        self._left_out = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._limit_lock = threading.Lock()

    def write(self, string: str) -> int | None:
        """Write text, or keep it for the end of the cell where the cell has written too much."""
        if not isinstance(string, str):
            return super().write(string)  # raises as every text stream does
        if os.getpid() != self._owner:  # a fork, such as a loader's worker, cannot speak to the notebook
            os.write(1 if self.name == "stdout" else 2, string.encode(errors="replace"))
            return len(string)
        with self._limit_lock:
            if len(string) <= self._room:
                self._room -= len(string)
            else:
                return self._keep(string)
        return super().write(string)

    def close(self) -> None:
        """Stay open: a program that closes it ends soon, and this stream has the prints of later cells to carry."""

    def _keep(self, string: str) -> int:
        passed, self._room = self._room, 0
        super().write(string[:passed])
        rest = string[passed:]
        self._left_out += max(0, len(rest) - TAIL)
        self._tail.append(rest[-TAIL:])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= TAIL:
            dropped = len(self._tail.popleft())
            self._tail_size -= dropped
            self._left_out += dropped
        return len(string)

    def end_cell(self, *_: object) -> None:
        """Write what was kept, and start counting anew."""
        with self._limit_lock:
            kept, left_out = "".join(self._tail), self._left_out
            self._tail.clear()
            self._room, self._left_out, self._tail_size = LIMIT, 0, 0
        if kept:
            super().write(f"\n… {left_out} characters left out …\n{kept}" if left_out else kept)


class NativeOutput:
    """Files in place of this process's standard output and error.

    Args:
        home: the world's private folder.
        rank: this rank.

    Attributes:
        log: what was standard error before, for messages that are not the reader's.
    """

    def __init__(self, home: str, rank: int) -> None:
        self._files = []
        self.log = os.fdopen(os.dup(2), "a", buffering=1)
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            path = native_path(home, rank, name)
            redirect(descriptor, path)
            self._files.append((descriptor, path, name))

    def begin_cell(self, *_: object) -> None:
        """Forget what was written between the cells."""
        for _descriptor, path, _name in self._files:
            os.truncate(path, 0)  # by its path: the descriptor may be a file of the reader's by now

    def end_cell(self, *_: object) -> None:
        """Hand what the cell's compiled code has written to Python's streams; open again what the cell has closed."""
        for descriptor, path, name in self._files:
            text = without_chatter(read(path))
            if not is_open(descriptor):
                redirect(descriptor, path)
            if text:
                getattr(sys, name).write(text)


def is_open(descriptor: int) -> bool:
    """Say whether a number is that of an open file."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def redirect(descriptor: int, path: Path) -> None:
    """Let what is written to a descriptor, open or closed, go to a file, which is emptied."""
    target = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    if target == descriptor:  # the lowest number that was free
        os.set_inheritable(descriptor, True)
        return
    os.dup2(target, descriptor)
    os.close(target)
