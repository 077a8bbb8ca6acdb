"""What a dead rank has left in the world's private folder: the line it was in, and what its process wrote last.

Read by the driver. Standard library only.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

from ..layout import bookmark_path, native_path

NUMBER = struct.Struct("<q")  # how a bookmark stores its line
SHOWN_BYTES = 1 << 20
# gloo (gloo/transport/tcp/pair.cc) ends the process where another rank sends more than it has room for.
TOO_MUCH = re.compile(r"op\.preamble\.length <= op\.nbytes\. (\d+) vs (\d+)")
ABORT = re.compile(r"what\(\):\s*(.+)")


def last_line(home: str | Path, rank: int) -> int:
    """Return the line of its cell in which a rank died; 0 where it ran none, or is on another computer."""
    try:
        return NUMBER.unpack(bookmark_path(home, rank).read_bytes())[0]
    except (OSError, struct.error):
        return 0


def last_words(home: str | Path, rank: int) -> str:
    """Return what compiled code in a rank wrote to standard error before it died, "" where it wrote nothing."""
    return read(native_path(home, rank, "stderr"))


def too_much(words: str) -> tuple[int, int] | None:
    """Return the bytes that gloo got and those it had room for, where that is why the rank aborted."""
    found = TOO_MUCH.search(words)
    return (int(found[1]), int(found[2])) if found else None


def exception(words: str) -> str:
    """Return the message of the C++ exception that nobody caught, "" where there was none."""
    found = ABORT.search(words)
    return found[1].strip() if found else ""


def read(path: Path) -> str:
    """Return the end of a file as text, "" where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - SHOWN_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
