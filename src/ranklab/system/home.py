"""The private folder of a world: what each rank leaves there, and how it is read, also after the rank's death.

Standard library only.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

BOOKMARK = struct.Struct("<q?")  # a rank's page: the line that runs, and whether its latest cell called a collective
SHOWN_BYTES = 1 << 20


def watchdog_path(home: str | Path, rank: int) -> Path:
    """Return where the watchdog of a rank listens, in the private folder of its world."""
    return Path(home, f"rank-{rank}.socket")


def bookmark_path(home: str | Path, rank: int) -> Path:
    """Return the file in which a rank notes the line it is in, and whether the cell called a collective."""
    return Path(home, f"rank-{rank}.line")


def native_path(home: str | Path, rank: int, stream: str) -> Path:
    """Return the file that is the standard output or error of a rank's process."""
    return Path(home, f"rank-{rank}.{stream}")


def last_line(home: str | Path, rank: int) -> int:
    """Return the line of its cell in which a rank died; 0 where it ran none, or is on another computer."""
    return _bookmark(home, rank)[0]


def has_called(home: str | Path, rank: int) -> bool:
    """Say whether a rank's latest cell, which has ended, called a collective; False for a rank on another computer."""
    return _bookmark(home, rank)[1]


def _bookmark(home: str | Path, rank: int) -> tuple[int, bool]:
    try:
        line, called = BOOKMARK.unpack(bookmark_path(home, rank).read_bytes())
    except (OSError, struct.error):
        return 0, False
    return line, called


def last_words(home: str | Path, rank: int) -> str:
    """Return what compiled code in a rank wrote to standard error before it died, "" where it wrote nothing."""
    return read(native_path(home, rank, "stderr"))


def read(path: Path) -> str:
    """Return the end of a file as text, "" where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - SHOWN_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
