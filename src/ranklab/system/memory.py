"""How much memory a process may have, and whether the system killed one for lack of it.

Linux limits and counts memory by control group, in two versions. Standard library, and psutil for the machine itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60  # version 1 says a number where version 2 says "max"


@dataclass(frozen=True)
class Version:
    """Where a version of control groups keeps memory's numbers: the root folder, and the names of its files."""

    root: Path
    events: str
    limit: str
    used: str
    cache: str


VERSIONS = {
    2: Version(CGROUP, "memory.events", "memory.max", "memory.current", "inactive_file"),
    1: Version(
        CGROUP / "memory",
        "memory.oom_control",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}


def free_memory_mb() -> int:
    """Return the megabytes this process may still use: what the machine has free, or a container's limit leaves."""
    import psutil

    free = psutil.virtual_memory().available
    for version, own in _groups(_membership("self")):
        for folder in (own, *own.parents):
            limit, used = _number(folder / version.limit), _number(folder / version.used)
            if limit is not None and used is not None:
                # The system gives page cache back when memory is short.
                free = min(free, limit - used + (_number(folder / "memory.stat", version.cache) or 0))
            if folder == version.root:
                break
    return max(0, free) >> 20


def kills(pids: Iterable[int]) -> dict[Path, int]:
    """Return how many processes the system has killed for lack of memory, in the control groups of some processes.

    Args:
        pids: the processes; nothing is known of one that has ended.

    Returns:
        File that counts, to count; ``/proc/vmstat`` counts for the whole machine.
    """
    memberships = {_membership(pid) for pid in pids}  # most often all are in the same groups
    groups = {folder / version.events: None for text in sorted(memberships) for version, folder in _groups(text)}
    counters = [Path("/proc/vmstat"), *groups]
    return {file: count for file in counters if (count := _number(file, "oom_kill")) is not None}


def shortage(before: dict[Path, int]) -> str:
    """Say in one sentence that memory was short, or "" where it was not.

    Args:
        before: what :func:`kills` has told before.
    """
    for file, count in reversed(before.items()):
        if (_number(file, "oom_kill") or 0) > count:
            for version in VERSIONS.values():
                limit = _number(file.parent / version.limit)
                if limit is not None and limit < UNLIMITED:
                    return f"it reached its memory limit of {limit >> 20} MB."
            return "the machine was short of memory, and the system killed it."
    return ""


def _membership(pid: int | str) -> str:
    """Return the lines that name the control groups of a process, "" where it has ended."""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _groups(membership: str) -> list[tuple[Version, Path]]:
    """Return the control groups that limit the memory of a process, with their versions."""
    groups = []
    for line in membership.splitlines():
        number, controllers, path = line.split(":", 2)
        version = VERSIONS[2 if number == "0" else 1]
        if number == "0" or "memory" in controllers.split(","):
            groups.append((version, version.root / path.lstrip("/")))
    return groups


def _number(file: Path, name: str = "") -> int | None:
    """Return the number in a file, or the one beside a name; None where there is none, or "max"."""
    try:
        for line in file.read_text().splitlines():
            key, _, value = line.rpartition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        pass
    return None
