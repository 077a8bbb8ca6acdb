"""Groups of fewer ranks than the notebook has, for graders: the reader's code finds one as its default group.

Runs inside a rank. An answer is written for any world size and calls ``dist.get_world_size()``; so that four ranks can
try it as two and as three, the first of them leave their group and meet in a smaller one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ..system.backends import ON_CPUS
from .meeting import count_anew, serve_store
from .meter import meter

# Longer than any grader waits: it ends what hangs, and a rank that is slow on a busy machine does not.
PATIENCE = timedelta(minutes=10)
_store: Any = None  # on rank 0: serves every group that met in it, so it stays until the next grader opens another
_client: Any = None  # on every rank: its one connection to that store


@dataclass
class Attempt:
    """What an answer did on one rank.

    Attributes:
        result: what it returned.
        given: its tensor after the call, to see whether it was changed.
        messages: how many messages the rank sent with ``send`` or ``isend``.
        payload: bytes of those messages.
        calls: collectives and messages by name.
        wire: bytes that left the rank by the kernel's count; None where it does not count.
    """

    result: Any = None
    given: Any = None
    messages: int = 0
    payload: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    wire: int | None = None


def open_store() -> tuple[int, bool]:
    """Open a store on rank 0 where groups can meet; return its port (0 on other ranks) and whether there is a group."""
    global _store
    import torch.distributed as dist

    member = dist.is_initialized()
    if os.environ["RANK"] != "0":
        return 0, member
    _store = serve_store(os.environ["MASTER_ADDR"], 0)
    return _store.port, member


def connect(port: int) -> None:
    """Connect this rank to the store of rank 0; apart from the answer, because it may take seconds.

    Args:
        port: where rank 0 serves its store.
    """
    global _client
    import torch.distributed as dist

    _client = dist.TCPStore(os.environ["MASTER_ADDR"], port, is_master=False, timeout=PATIENCE)


def attempt(answer: Any, round_: str, size: int, cases: Sequence[tuple]) -> list[Attempt]:
    """Call an answer on the first ranks, in a group of their own.

    An error ends the call, and with it the grader: the other ranks may be waiting for this one.

    Args:
        answer: called with each case.
        round_: a name that no earlier round had.
        size: how many ranks take part; the others return an empty list.
        cases: for each call the arguments, by rank: ``cases[i][rank]`` is a tuple.
    """
    rank = int(os.environ["RANK"])
    with _group(round_, rank, size) as member:
        if not member:
            return []
        # Whoever fails at once leaves the group, and another that still makes it would fail of that, not of the answer.
        _await_all(member, "made", rank, size)
        done = []
        for number, by_rank in enumerate(cases):
            done.append(_one(answer, by_rank[rank]))
            # A rank that goes on alone would look like one that has died, or call what belongs to the next case.
            _await_all(member, f"case {number}", rank, size)
        return done


def rejoin(round_: str) -> None:
    """Make a group of all ranks again, as the reader had one.

    Args:
        round_: a name that no earlier round had.
    """
    import torch.distributed as dist

    if not dist.is_initialized():
        count_anew()
        dist.init_process_group(**_meeting(round_, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])))


def _one(answer: Any, arguments: tuple) -> Attempt:
    told = Attempt()
    with meter() as counted:
        told.result = answer(*arguments)
    told.given = arguments[0] if arguments else None
    told.messages, told.payload, told.wire = counted.messages, counted.payload["send"], counted.wire
    told.calls = dict(counted.calls)
    return told


def _await_all(store: Any, point: str, rank: int, size: int) -> None:
    """Wait until every rank has come to a point, without a message of the group."""
    store.set(f"{point} rank {rank}", "")
    store.wait([f"{point} rank {other}" for other in range(size)])


@contextmanager
def _group(round_: str, rank: int, size: int) -> Iterator[Any]:
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()
    count_anew()
    meeting = _meeting(round_, rank, size)
    if rank < size:
        dist.init_process_group(**meeting)
    try:
        yield meeting["store"] if rank < size else None
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _meeting(round_: str, rank: int, size: int) -> dict[str, Any]:
    import torch.distributed as dist

    store = dist.PrefixStore(round_, _client)
    return {"backend": ON_CPUS.name, "store": store, "rank": rank, "world_size": size, "timeout": PATIENCE}
