"""Getting ranks back that do not come back by themselves.

Three means, from gentle to final: an interrupt, which ends Python code; cutting its connections or aborting its
groups, which ends any wait for another rank; a new process, which ends everything and loses that rank's variables.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..rank.errands import leave_group
from ..system.patience import COME_BACK, LEAVE, LOADER, REST, Patience
from ..system.ports import says_taken
from .asking import ask_all, patience_with

if TYPE_CHECKING:
    from ..engines.processes import Processes
    from ..state import RankState

LOADING = "torch.utils.data"  # a rank waits for the workers of a DataLoader, which end later than it does
PORTS = 3  # ports that rank 0 tries, where other programs take them first


def free(processes: Processes, stuck: Mapping, seen: Mapping[int, RankState]) -> list[int]:
    """End what the stuck ranks are doing, and take every rank out of its process group.

    Args:
        processes: of the world.
        stuck: the pending reply of each rank that does not come back.
        seen: what each rank's watchdog has told; a rank that gave no answer is missing.

    Returns:
        The ranks whose processes had to be ended.
    """
    patience = patience_with(processes, stuck)
    silent = [rank for rank in stuck if rank not in seen]  # Python does not run there: nothing gentle will help
    reachable = [rank for rank in stuck if rank not in silent]
    if _come_back_gently(processes, stuck, reachable, seen, patience):
        return regroup(processes)
    loading = any(state.call.startswith(LOADING) for rank, state in seen.items() if rank in stuck)
    ended = _end(processes, stuck, silent, reachable, patience, LOADER if loading else COME_BACK)
    return sorted({*ended, *regroup(processes)})


def _come_back_gently(
    processes: Processes, stuck: Mapping, reachable: list[int], seen: Mapping[int, RankState], patience: Patience
) -> bool:
    """Interrupt the ranks and cut their connections; say whether all have come back."""
    _signal(processes, stuck, [rank for rank in stuck if rank in seen and seen[rank].stopped], signal.SIGCONT)
    # Ranks that still exchange messages come to rest first: a message that is cut on its way can be lost, and
    # then the rank waits for ever.
    _signal(processes, stuck, stuck, signal.SIGINT)
    patience.wait(stuck, REST)
    ask_all(processes, reachable, "cut")
    return patience.wait(stuck, COME_BACK)


def _end(
    processes: Processes, stuck: Mapping, silent: list[int], reachable: list[int], patience: Patience, seconds: float
) -> list[int]:
    """End the processes of ranks that had their time to come back; return these ranks."""
    ended = _signal(processes, stuck, silent, signal.SIGKILL)
    _signal(processes, stuck, reachable, signal.SIGINT)
    if not patience.wait(stuck, seconds):
        ended += _signal(processes, stuck, stuck, signal.SIGKILL)
        patience.wait(stuck, COME_BACK)
    return ended


def regroup(processes: Processes) -> list[int]:
    """Take the ranks that are alive out of their process group, so that they can make a new one.

    An idle rank can hold a collective that it never waited for; leaving the group would then block, so all
    connections are cut first. A rank that blocks all the same is ended.

    Args:
        processes: of the world.

    Returns:
        The ranks whose processes had to be ended.
    """
    for _ in range(PORTS):
        port = processes.new_master_port()
        alive = processes.alive()
        ask_all(processes, alive, "cut")
        leaving = {rank: processes.client.direct_view(rank).apply_async(leave_group, port) for rank in alive}
        patience = patience_with(processes, alive)
        if not patience.wait(leaving, LEAVE):
            ended = _signal(processes, leaving, alive, signal.SIGKILL)
            patience.wait(leaving, COME_BACK)
            return ended
        if 0 not in leaving or not says_taken(getattr(leaving[0].exception(), "evalue", "")):
            break
    return []


def _signal(processes: Processes, stuck: Mapping, ranks: Iterable[int], number: int) -> list[int]:
    """Send a signal to those of these ranks that are not done; return them."""
    pending = [rank for rank in ranks if not stuck[rank].done()]
    for rank in pending:
        processes.signal(rank, number)
    return pending
