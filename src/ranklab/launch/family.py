"""The processes of a launch, as the system lists them: torchrun, its ranks, and what the ranks have started."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import psutil

from ..system.deadman import HOME

# torchrun says by it that it serves the store in which ranks meet; whoever inherits it serves none and waits for one.
SERVED = ("TORCHELASTIC_USE_AGENT_STORE", "True")
# What torch calls a worker of a data loader, which meets nobody (torch/utils/data/_utils/worker.py, torch 2.13).
DATA_WORKER = "pt_data_worker"
SPAWNED = "--multiprocessing-fork"  # the last word in the command of a process that multiprocessing has spawned


def family(pids: Iterable[int]) -> set[int]:
    """Return the processes that still run, and all that descend from them.

    Args:
        pids: the processes that were started.
    """
    found = set()
    for pid in pids:
        try:
            found |= {pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))}
        except psutil.Error:  # it has ended
            continue
    return found


def living(pids: Iterable[int]) -> set[int]:
    """Return the ranks that still run; none where nobody can tell, as on other computers.

    Args:
        pids: the processes that were started.
    """
    found = set()
    for pid in family(pids):
        try:
            process = psutil.Process(pid)
            if _is_rank(process) and process.status() != psutil.STATUS_ZOMBIE:
                found.add(int(_environment(process)["RANK"]))
        except (psutil.Error, OSError, KeyError, ValueError):  # as below
            continue
    return found


def strays(pids: Iterable[int]) -> dict[int, int]:
    """Return how many processes each rank has started that cannot meet in a process group if they try to.

    A rank that has met the others itself is left out: what it has started helps it.

    Args:
        pids: the processes that were started.
    """
    found = {}
    for pid in family(pids):
        try:
            process = psutil.Process(pid)
            if _is_rank(process) and not _has_met(process):
                found[int(_environment(process)["RANK"])] = sum(map(_is_stray, process.children(recursive=True)))
        except (psutil.Error, KeyError, ValueError):  # it has just ended, or is none of torchrun's
            continue
    return {rank: found[rank] for rank in sorted(found) if found[rank]}


def _expects_a_store(process: psutil.Process) -> bool:
    name, value = SERVED
    return _environment(process).get(name) == value


def _environment(process: psutil.Process) -> dict[str, str]:
    """Return a process's variables; of a fork, which the system lists with those of the process that was started.

    What torchrun gave to a rank that is a copy stands in a file (launch/quick/copies.py); others' forks have what their
    parents have.
    """
    environment, parent = process.environ(), process.parent()
    note = Path(environment.get(HOME, ""), f"rank-{process.pid}.json")
    if HOME in environment and note.exists():
        return environment | json.loads(note.read_text())
    if parent is not None and process.cmdline() == parent.cmdline() and environment == parent.environ():
        return _environment(parent)
    return environment


def _is_rank(process: psutil.Process) -> bool:
    parent = process.parent()
    return _expects_a_store(process) and parent is not None and not _expects_a_store(parent)


def _has_met(rank: psutil.Process) -> bool:
    """Say whether a rank is connected to the store of its torchrun, as one in a process group is."""
    port = int(_environment(rank)["MASTER_PORT"])
    return any(each.raddr and each.raddr.port == port for each in rank.net_connections("tcp"))


def _is_stray(process: psutil.Process) -> bool:
    try:
        command, parent = process.cmdline(), process.parent()
        # What is forked, by multiprocessing's fork server too, runs under the command of its parent.
        python = SPAWNED in command or (parent is not None and command == parent.cmdline() != [])
        return python and process.name() != DATA_WORKER and _expects_a_store(process)
    except psutil.Error:
        return False
