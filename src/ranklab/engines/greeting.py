"""The first question to each rank, asked until it has answered.

The controller drops what is sent to an engine whose connection to it is not complete, and the hub can have admitted
the engine before: on a busy machine the first message may be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import wait
from typing import TYPE_CHECKING

from ..errors import RanklabError, StartLost
from ..layout import name_ranks
from ..rank.errands import greet
from ..system.patience import overdue
from ..system.ports import says_taken

if TYPE_CHECKING:
    import ipyparallel as ipp

PATIENCE = 2.0  # seconds until a rank is asked again
UNHEARD = 30.0  # usable seconds after which a connection counts as lost: seen once, in a start beside other tests


def greet_all(
    client: ipp.Client, ranks: Sequence[int], may_still_come: Callable[[], None], pids: Sequence[int] = ()
) -> None:
    """Wait until each of these ranks has answered and is prepared.

    Args:
        client: of the ranks' controller, which has admitted them.
        ranks: who is asked.
        may_still_come: called after each round; raises where waiting has become useless.
        pids: processes that have to run for an answer; without them a rank elsewhere may take its time.

    Raises:
        StartLost: another program has taken the port of rank 0, or a rank is there and never answers.
        RanklabError: a rank could not prepare, with its reason.
    """
    waiting, unheard = list(ranks), overdue(UNHEARD, pids)
    while waiting:
        replies = {rank: client.direct_view(rank).apply_async(greet) for rank in waiting}
        wait(list(replies.values()), timeout=PATIENCE)
        may_still_come()
        waiting = [rank for rank, reply in replies.items() if not reply.done()]
        for rank in waiting:
            client.outstanding.difference_update(replies[rank].msg_ids)  # client.wait() would wait for it
        if waiting and pids and unheard():
            raise StartLost(f"{name_ranks(waiting)} came up and did not answer. Use world.restart().")
        for rank in sorted(replies.keys() - waiting):
            error = replies[rank].exception()
            if error is not None:  # ipyparallel's own errors have no ename: TaskAborted
                name, told = getattr(error, "ename", type(error).__name__), getattr(error, "evalue", error)
                kind = StartLost if says_taken(told) else RanklabError
                raise kind(f"rank {rank} could not prepare: {name}: {told}")
