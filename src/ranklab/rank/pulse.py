"""Signs of life of this rank: counts that stand still while its thread waits. Linux tells them, other systems nothing.

Runs inside a rank, in the watchdog's thread. Standard library only.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..lab.namespaces import HOST

CABLE = "eth0:"  # a host's end of its cable


def switches(thread: int) -> int:
    """Return how often a thread of this process has slept and was woken; 0 where Linux's /proc is missing.

    Args:
        thread: its native id.
    """
    try:
        status = Path(f"/proc/self/task/{thread}/status").read_text()
    except OSError:
        return 0
    return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])


def at_work(thread: int) -> int:
    """Return the nanoseconds in which a thread of this process has computed, or could have if a processor was free.

    Args:
        thread: its native id.
    """
    try:
        running, ready, _ = Path(f"/proc/self/task/{thread}/schedstat").read_text().split()
    except (OSError, ValueError):
        return 0
    return int(running) + int(ready)


def carried() -> int:
    """Return the bytes that the cable of this rank's host has carried, in and out; 0 where the rank is on none."""
    if HOST not in os.environ:
        return 0  # an interface of that name is the machine's, and carries anything
    try:
        lines = Path("/proc/self/net/dev").read_text().splitlines()
    except OSError:
        return 0
    for name, *counts in (line.split() for line in lines):
        if name == CABLE:
            return int(counts[0]) + int(counts[8])  # received, sent
    return 0
