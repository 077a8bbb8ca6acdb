"""Start a learner's server under the room's limits: ``python -m bookkit.hub.limited --memory 4 … -- command``.

The limits are the system's own and are inherited by all that the learner starts: kernels, ranks, terminals.
Standard library only: this stands in front of every server.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys

GB = 2**30
POLITE = 5  # learners' processes stand back where the hub and its proxy want the processor


def limit(memory: float, cores: int, place: int, processes: int) -> None:
    """Put this process, and all that it will start, under limits.

    Args:
        memory: GB of private memory that each process may hold; 0 for as much as there is.
        cores: processors that all of them may use together; 0 for all.
        place: which learner this is, so that neighbours get other processors.
        processes: how many processes and threads this system's user may have, 0 for no limit of ours. Root has none.
    """
    if memory:
        # What a process has written, not what it has mapped: torch maps files and reserves addresses by the gigabyte.
        _lower(resource.RLIMIT_DATA, int(memory * GB))
    if processes:
        _lower(resource.RLIMIT_NPROC, processes)
    if cores and hasattr(os, "sched_setaffinity"):
        here = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {here[(place * cores + number) % len(here)] for number in range(cores)})
    os.nice(POLITE)


def _lower(name: int, wanted: int) -> None:
    _, hard = resource.getrlimit(name)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(name, (allowed, allowed))


def main() -> None:
    """Set the limits and become the command."""
    parser = argparse.ArgumentParser(prog="python -m bookkit.hub.limited", description=__doc__.split("\n\n")[0])
    parser.add_argument("--memory", type=float, default=0)
    parser.add_argument("--cores", type=int, default=0)
    parser.add_argument("--place", type=int, default=0)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("command", nargs="+")
    told = parser.parse_args()
    limit(told.memory, told.cores, told.place, told.processes)
    sys.stdout.flush()
    os.execvp(told.command[0], told.command)


if __name__ == "__main__":
    main()
