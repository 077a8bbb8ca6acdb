"""Files that processes write and that a notebook reads, however much is written.

torchrun's ``--redirects`` gives each rank a file of its own. A rank that prints without end would fill the disk, so
a file that has grown too long is emptied while it is written: its beginning and its end are kept.
"""

from __future__ import annotations

import os
from pathlib import Path

LIMIT = 1_000_000  # bytes of a file that are kept as they are; a panel shows far fewer
TAIL = 10_000


class Log:
    """A file that somebody else writes.

    Args:
        path: where it is, or will be.

    Attributes:
        changed: when it was last written, in seconds since 1970; 0 where it does not exist.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self.changed = 0.0
        self._head: bytes | None = None
        self._tail = b""

    def look(self) -> None:
        """Keep the file small; called every moment while it is written."""
        try:
            state = self.path.stat()
        except FileNotFoundError:
            return
        self.changed = state.st_mtime
        if state.st_blocks * 512 <= 2 * LIMIT:
            return
        with self.path.open("r+b") as file:
            if self._head is None:
                self._head = file.read(LIMIT)
            self._tail = _last(file, state.st_size)
            # The writer goes on where it was: before that there is a hole, which takes no room.
            file.truncate(0)
        os.utime(self.path, (state.st_mtime, state.st_mtime))

    def text(self) -> str:
        """Return what was written; of a very long text its beginning, how much is left out, and its end."""
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if self._head is None and size <= 2 * LIMIT:
                    return _decode(file.read())
                if self._head is None:
                    self._head = file.read(LIMIT)
                tail = (self._tail + _last(file, size))[-TAIL:]
        except FileNotFoundError:
            return ""
        left_out = max(size, len(self._head) + len(tail)) - len(self._head) - len(tail)
        return f"{_decode(self._head)}\n… {left_out} bytes left out …\n{_decode(tail)}"


def _last(file, size: int) -> bytes:
    """Return the last bytes of a file, without those of a hole."""
    file.seek(max(0, size - TAIL))
    return file.read(TAIL).lstrip(b"\0")


def _decode(data: bytes) -> str:
    return data.decode("utf8", errors="replace")
