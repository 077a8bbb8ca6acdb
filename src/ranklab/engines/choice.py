"""How ranks start, and how many this machine can hold.

Asks the operating system and starts nothing; standard library and psutil.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from typing import Any

import psutil

from ..errors import WorldError
from ..system.memory import free_memory_mb

FORK = "fork"
SPAWN = "spawn"
ELSEWHERE = ("slurm", "ssh", "mpi")
# Megabytes. Measured (tests/benchmarks, torch 2.13 for CPUs) after a first all_reduce: a forked rank owns 26, a rank
# that has imported torch itself 166, its nanny 27; the fork server holds 237, the controller's processes own 90. The
# rest is room to breathe.
RANK_MB = {FORK: 40, SPAWN: 220}
BASE_MB = {FORK: 350, SPAWN: 100}

# Open files. Measured with 1 to 8 ranks: the controller's first process holds 53 and one more a rank, the one that
# forks its ranks 61 to 69; the notebook opens 26, however many ranks.
FILES, FILES_PER_RANK, NOTEBOOK_FILES = 64, 4, 32

SENTENCES = {
    FORK: "Ranks are forked from one process that has imported torch.",
    SPAWN: "Ranks are started one by one and each imports torch for itself",
}


def choose_launcher(asked: str | None) -> tuple[str, str]:
    """Decide between forking ranks and starting them one by one.

    Args:
        asked: what the reader asked for: "fork", "spawn", or None for what is right here.

    Returns:
        The launcher, and a sentence that says which and why.

    Raises:
        WorldError: no such launcher, or forking was asked for where it is unsafe.
    """
    if asked not in (None, FORK, SPAWN):
        raise WorldError(f'launcher is "fork" or "spawn", or left out, not {asked!r}.')
    if not sys.platform.startswith("linux"):
        # On macOS the system's own libraries have threads that a fork does not carry over; Windows cannot fork.
        if asked == FORK:
            raise WorldError(f"Ranks can be forked on Linux only, and this is {sys.platform}: leave launcher out.")
        return SPAWN, f"{SENTENCES[SPAWN]}: forking is safe on Linux only."
    if asked == SPAWN:
        return SPAWN, f'{SENTENCES[SPAWN]}: launcher="spawn".'
    return FORK, SENTENCES[FORK]


def check_elsewhere(engines: str | None, given: Mapping[str, Any]) -> None:
    """Refuse what ipyparallel's own launchers could not do.

    Args:
        engines: the launcher that was asked for, None for ranks on this machine.
        given: what else was said about it, by name.

    Raises:
        WorldError: a sentence that says what to write instead.
    """
    unknown = given.keys() - {"hosts", "address", "options"} if engines else given.keys()
    if unknown:
        name = min(unknown)
        instead = f': the launcher is told in options={{"{name}": …}}.' if engines else " without engines=."
        raise WorldError(f"start() has no {name!r}{instead}")
    if not engines:
        return
    if engines not in ELSEWHERE:
        raise WorldError(f'engines is "slurm", "ssh" or "mpi", or left out, not {engines!r}.')
    for name, example in (("hosts", '{"computer1": 2, "computer2": 1}'), ("options", '{"queue": "debug"}')):
        if not isinstance(given.get(name) or {}, Mapping):
            raise WorldError(f"{name} is a dictionary, for example {name}={example}, not {given[name]!r}.")
    if (engines == "ssh") != bool(given.get("hosts")):
        raise WorldError('engines="ssh" and hosts go together: start(engines="ssh", hosts={"computer1": 2}).')


def check_room(size: int, launcher: str) -> None:
    """Refuse more ranks than this machine's memory and open files hold; arguments and errors: the two below."""
    check_memory(size, launcher)
    check_open_files(size)


def check_memory(size: int, launcher: str) -> None:
    """Refuse more ranks than memory holds.

    Args:
        size: ranks asked for.
        launcher: "fork" or "spawn".

    Raises:
        WorldError: a sentence that says how many fit.
    """
    free = free_memory_mb()
    fit = max(0, (free - BASE_MB[launcher]) // RANK_MB[launcher])
    if size > fit:
        raise WorldError(
            f"{size} ranks do not fit: {free} MB of memory are free and a rank needs about {RANK_MB[launcher]} MB "
            f"before it holds any data, so {fit} would fit. Stop other notebooks, or start fewer ranks."
        )


def check_open_files(size: int) -> None:
    """Refuse ranks where a process may open too few files, before each fails at another place of its own.

    Args:
        size: ranks asked for.

    Raises:
        WorldError: the limit is lower than a process of these ranks needs.
        OSError: EMFILE, where this notebook has too many files open.
    """
    try:
        import resource
    except ImportError:
        return
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return
    if limit - psutil.Process().num_fds() < NOTEBOOK_FILES:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    needed = FILES + FILES_PER_RANK * size
    if limit < needed:
        raise WorldError(
            f"{size} ranks need up to {needed} open files in one process, and the limit here is {limit}. "
            "Start Python again after `ulimit -n 1024`, or start fewer ranks."
        )
