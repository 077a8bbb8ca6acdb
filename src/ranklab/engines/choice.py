"""How ranks start, how many this machine can hold, and which backend they use.

Asks the operating system and starts nothing; standard library and psutil.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import WorldError
from ..layout import Place
from ..live import tell
from ..system.backends import ON_CPUS, ON_GPUS
from ..system.gpus import own_gpu, visible_gpus
from ..system.memory import free_memory_mb

FORK = "fork"
SPAWN = "spawn"
ELSEWHERE = ("slurm", "ssh", "mpi")
# Megabytes. Measured (tests/benchmarks, torch 2.13 for CPUs) after a first all_reduce: a forked rank owns 26, a rank
# that has imported torch itself 166, its nanny 27; the fork server holds 237, the controller's processes own 90. The
# rest is room to breathe.
RANK_MB = {FORK: 40, SPAWN: 220}
BASE_MB = {FORK: 350, SPAWN: 100}

SENTENCES = {
    FORK: "Ranks are forked from one process that has imported torch.",
    SPAWN: "Ranks are started one by one and each imports torch for itself",
}
NO_GPU = f"the ranks use the CPU and {ON_CPUS.title}, and see no GPU."


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


def choose_backend(nodes: Sequence[int]) -> str:
    """Choose the backend for GPUs where each rank has one of its own: it takes no two ranks on one GPU.

    Nodes laid out on one machine would count the same GPUs twice, each from local rank 0.
    """
    gpus = visible_gpus()
    if gpus and len(nodes) > 1:
        tell(f"Several nodes on one machine would share its GPUs: {NO_GPU}")
    elif gpus and gpus < nodes[0]:
        tell(_too_few(gpus, nodes[0]))
    elif gpus:
        return ON_GPUS.name
    return ON_CPUS.name


def choose_backend_elsewhere(places: Sequence[Place], seen: Sequence[Sequence[str]]) -> str:
    """Choose the backend for GPUs where each rank has one of its own, for ranks that another launcher has started.

    Args:
        places: of the ranks, in rank order.
        seen: the GPUs that each rank sees, by name and in its order; a launcher may show each rank others.
    """
    taken = set()
    for place, gpus in zip(places, seen, strict=True):
        gpu = own_gpu(place.local_rank, place.local_world_size, len(gpus), one_each=True)
        if gpu is not None:
            taken.add((place.node_rank, gpus[gpu]))
    if len(taken) == len(places):
        return ON_GPUS.name
    if any(seen):
        tell(_why_no_gpu(places, seen))
    return ON_CPUS.name


def _why_no_gpu(places: Sequence[Place], seen: Sequence[Sequence[str]]) -> str:
    for node in range(places[0].nnodes):
        ranks = [place.rank for place in places if place.node_rank == node]
        gpus = len(set().union(*(seen[rank] for rank in ranks)))
        if gpus < len(ranks):
            return _too_few(gpus, len(ranks))
    return f"The launcher does not show each rank a GPU of its own: {NO_GPU}"


def _too_few(gpus: int, ranks: int) -> str:
    have = "1 GPU is" if gpus == 1 else f"{gpus} GPUs are"
    return f"{have} fewer than {ranks} ranks: {NO_GPU}"


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
