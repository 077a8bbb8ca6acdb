"""How ranks start on this machine, and how many it can hold: decided before anything is started.

Asks the operating system and starts nothing; standard library and psutil.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..errors import WorldError
from ..hangs.memory import free_memory_mb
from ..live import tell
from .gpus import visible_gpus

FORK = "fork"
SPAWN = "spawn"
# Megabytes. Measured (tests/benchmarks, torch 2.13 for CPUs) after a first all_reduce: a forked rank owns 26, a rank
# that has imported torch itself 166, its nanny 27; the fork server holds 237, the controller's processes own 90. The
# rest is room to breathe.
RANK_MB = {FORK: 40, SPAWN: 220}
BASE_MB = {FORK: 350, SPAWN: 100}

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


def choose_backend(nodes: Sequence[int]) -> str:
    """NCCL where each rank has a GPU of its own: it takes no two ranks on one GPU.

    Nodes laid out on one machine would count the same GPUs twice, each from local rank 0.
    """
    gpus = visible_gpus()
    if gpus and len(nodes) > 1:
        tell("Several nodes on one machine would share its GPUs: the ranks use the CPU and gloo, and see no GPU.")
    elif gpus and gpus < nodes[0]:
        have = "1 GPU is" if gpus == 1 else f"{gpus} GPUs are"
        tell(f"{have} fewer than {nodes[0]} ranks: the ranks use the CPU and gloo, and see no GPU.")
    elif gpus:
        return "nccl"
    return "gloo"


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


def no_more(error: OSError) -> str:
    """Say in one sentence what the operating system has run out of, or will not let us write."""
    import errno

    if error.errno in (errno.EMFILE, errno.ENFILE):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return (
            f"Ranks need open files, and this notebook has none left (its limit is {limit}). Close what it has open "
            "or restart its kernel; `ulimit -n` shows and sets the limit."
        )
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return f"The system refused another process ({error.strerror}). Stop other notebooks, or start fewer ranks."
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.ENOENT):
        return (
            f"Ranks need a folder they can write to, and {error.filename or 'the temporary folder'} is not one "
            f"({error.strerror}). Set TMPDIR to a folder of yours, before Python starts."
        )
    where = f" ({os.fspath(error.filename)})" if error.filename else ""
    return f"The system refused: {error.strerror or error}{where}."
