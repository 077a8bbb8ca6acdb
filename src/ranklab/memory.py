"""Whether the system killed a rank because memory was short: Linux counts it for every control group.

Read by the driver before a cell and after a death. Standard library only.
"""

from __future__ import annotations

from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
# Version 2, then version 1: the folder, the file that counts, the file that holds the limit.
VERSIONS = ((CGROUP, "memory.events", "memory.max"), (CGROUP / "memory", "memory.oom_control", "memory.limit_in_bytes"))


def kills(pid: int) -> dict[Path, int]:
    """Return how many processes the system has killed for lack of memory, in the control groups of a process.

    Args:
        pid: the process; nothing is known of one that has ended.

    Returns:
        File that counts, to count; ``/proc/vmstat`` counts for the whole machine.
    """
    counters = [Path("/proc/vmstat")]
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0" or "memory" in controllers.split(","):
            root, events, _ = VERSIONS[number != "0"]
            counters.append(root / path.lstrip("/") / events)
    return {file: count for file in counters if (count := _count(file)) is not None}


def shortage(before: dict[Path, int]) -> str:
    """Say in one sentence that memory was short, or "" where it was not.

    Args:
        before: what :func:`kills` has told of the process that was killed since.
    """
    for file, count in reversed(before.items()):
        if (_count(file) or 0) > count:
            limit = _limit(file)
            if limit:
                return f"it reached its memory limit of {limit >> 20} MB."
            return "the machine was short of memory, and the system killed it."
    return ""


def _count(file: Path) -> int | None:
    try:
        for line in file.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    except (OSError, ValueError):
        pass
    return None


def _limit(file: Path) -> int | None:
    for _, events, limit in VERSIONS:
        if file.name == events:
            try:
                return int((file.parent / limit).read_text())
            except (OSError, ValueError):  # "max", or the group is gone
                return None
    return None
