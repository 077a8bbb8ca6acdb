"""Getting ranks back that do not come back by themselves.

Three means, from gentle to final: cutting gloo's connections, which ends any wait for another rank; an interrupt,
which ends Python code; a new process, which ends everything and loses that rank's variables.
"""

from __future__ import annotations

import concurrent.futures
import signal
from typing import TYPE_CHECKING

from .on_rank import leave_group

if TYPE_CHECKING:
    from .world import World

PATIENCE = 2.0
# Leaving a group takes milliseconds; on a machine that is busy with other things it may take its time.
LEAVE_PATIENCE = 5.0


def free(world: World, stuck: dict, places: dict) -> None:
    """End what the stuck ranks are doing, and take every rank out of its process group.

    Args:
        world: the running world.
        stuck: the pending reply of each rank that does not come back.
        places: what each rank's watchdog has told; a rank that gave no answer is missing.
    """
    _signal(world, stuck, [rank for rank in stuck if places.get(rank, {}).get("stopped")], signal.SIGCONT)
    for rank in stuck:
        world.processes.ask(rank, "cut")
    # A cut ends what waits inside torch by itself; an interrupt would only add a second error to the first.
    _signal(world, stuck, [rank for rank in stuck if not _in_torch(places.get(rank))], signal.SIGINT)
    for number in (signal.SIGINT, signal.SIGKILL):
        if _all_done(stuck, PATIENCE):
            break
        _signal(world, stuck, list(stuck), number)
    else:
        _all_done(stuck, PATIENCE)
    regroup(world)


def regroup(world: World) -> None:
    """Take the ranks that are alive out of their process group, so that they can make a new one.

    An idle rank can hold a collective that it never waited for; leaving the group would then block, so all
    connections are cut first. A rank that blocks all the same gets a new process.
    """
    port = world.processes.new_master_port()
    alive = world.processes.alive()
    for rank in alive:
        world.processes.ask(rank, "cut")
    leaving = {rank: world.view(rank).apply_async(leave_group, port) for rank in alive}
    if not _all_done(leaving, LEAVE_PATIENCE):
        _signal(world, leaving, alive, signal.SIGKILL)
        _all_done(leaving, PATIENCE)


def _in_torch(place: dict | None) -> bool:
    return bool(place) and place.get("call", "").startswith("torch.")


def _signal(world: World, stuck: dict, ranks: list[int], number: int) -> None:
    for rank in ranks:
        if not stuck[rank].done():
            world.processes.signal(rank, number)


def _all_done(stuck: dict, patience: float) -> bool:
    return not concurrent.futures.wait(list(stuck.values()), timeout=patience).not_done
