"""Getting ranks back that do not come back by themselves.

Three means, from gentle to final: an interrupt, which ends Python code; cutting gloo's connections or aborting NCCL's
group, which ends any wait for another rank; a new process, which ends everything and loses that rank's variables.
"""

from __future__ import annotations

import concurrent.futures
import signal
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..rank.errands import leave_group

if TYPE_CHECKING:
    from ..state import RankState
    from ..world import World

REST = 0.3  # seconds; a small collective takes a thousandth of it
PATIENCE = 1.0
# Leaving a group takes milliseconds; on a machine that is busy with other things it may take its time.
LEAVE_PATIENCE = 5.0


def free(world: World, stuck: dict, seen: dict[int, RankState]) -> list[int]:
    """End what the stuck ranks are doing, and take every rank out of its process group.

    Args:
        world: the running world.
        stuck: the pending reply of each rank that does not come back.
        seen: what each rank's watchdog has told; a rank that gave no answer is missing.

    Returns:
        The ranks whose processes had to be ended.
    """
    _signal(world, stuck, [rank for rank in stuck if rank in seen and seen[rank].stopped], signal.SIGCONT)
    # Ranks that still exchange messages come to rest first: gloo can lose a message that is cut on its way, and then
    # waits for ever.
    _signal(world, stuck, list(stuck), signal.SIGINT)
    _all_done(stuck, REST)
    silent = [rank for rank in stuck if rank not in seen]  # Python does not run there: nothing gentle will help
    ask_all(world, [rank for rank in stuck if rank not in silent], "cut")
    if _all_done(stuck, PATIENCE):
        return regroup(world)
    ended = _signal(world, stuck, silent, signal.SIGKILL)
    _signal(world, stuck, [rank for rank in stuck if rank not in silent], signal.SIGINT)
    if not _all_done(stuck, PATIENCE):
        ended += _signal(world, stuck, list(stuck), signal.SIGKILL)
        _all_done(stuck, PATIENCE)
    return sorted({*ended, *regroup(world)})


def ask_all(world: World, ranks: Iterable[int], question: str = "where") -> dict[int, Any]:
    """Return what the watchdogs of these ranks say, all asked at once; without the ranks that give no answer."""
    ranks = list(ranks)
    if not ranks:
        return {}
    with concurrent.futures.ThreadPoolExecutor(len(ranks)) as threads:
        answers = zip(ranks, threads.map(lambda rank: world.processes.ask(rank, question), ranks), strict=True)
    return {rank: answer for rank, answer in answers if answer}


def regroup(world: World) -> list[int]:
    """Take the ranks that are alive out of their process group, so that they can make a new one.

    An idle rank can hold a collective that it never waited for; leaving the group would then block, so all
    connections are cut first. A rank that blocks all the same is ended.

    Returns:
        The ranks whose processes had to be ended.
    """
    port = world.processes.new_master_port()
    alive = world.processes.alive()
    ask_all(world, alive, "cut")
    leaving = {rank: world.view(rank).apply_async(leave_group, port) for rank in alive}
    if _all_done(leaving, LEAVE_PATIENCE):
        return []
    ended = _signal(world, leaving, alive, signal.SIGKILL)
    _all_done(leaving, PATIENCE)
    return ended


def _signal(world: World, stuck: dict, ranks: list[int], number: int) -> list[int]:
    """Send a signal to those of these ranks that are not done; return them."""
    pending = [rank for rank in ranks if not stuck[rank].done()]
    for rank in pending:
        world.processes.signal(rank, number)
    return pending


def _all_done(stuck: dict, patience: float) -> bool:
    return not concurrent.futures.wait(list(stuck.values()), timeout=patience).not_done
