"""What compiled code wrote before it ended a rank, read for the cause. Pure."""

from __future__ import annotations

import re

# gloo (gloo/transport/tcp/pair.cc) ends the process where another rank sends more than it has room for.
TOO_MUCH = re.compile(r"op\.preamble\.length <= op\.nbytes\. (\d+) vs (\d+)")
ABORT = re.compile(r"what\(\):\s*(.+)")


def too_much(words: str) -> tuple[int, int] | None:
    """Return the bytes that gloo got and those it had room for, where that is why the rank aborted."""
    found = TOO_MUCH.search(words)
    return (int(found[1]), int(found[2])) if found else None


def exception(words: str) -> str:
    """Return the message of the C++ exception that nobody caught, "" where there was none."""
    found = ABORT.search(words)
    return found[1].strip() if found else ""
