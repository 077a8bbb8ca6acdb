"""What this rank has given to its device and what has not ended, for backends whose calls come back before that.

The rank's own stack does not tell then in which call it waits: it is at the end of the cell, or in an innocent line
that needed a number. The recorder has noted which operations were called, from which lines, and which have ended. They
end in the order in which they were called, so the rank waits in the first that has not. Runs inside a rank, in the
watchdog's thread. Standard library only; torch is looked up where the reader has imported it.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..state import Collective, RankState
from ..system.backends import BACKENDS, Backend, named, of_group
from .recorder import COMPLETED, process_groups, torchs_groups
from .stacks import without_compiler
from .trace import lines_of

MESSAGE = re.compile(r"(send|recv) (\d+)(?:->|<-)(\d+)")  # the recorder's title of a message: the rank, and its peer
PEER = {"send": "dst", "recv": "src"}  # as dist.send and dist.recv name it
BATCH = "coalesced"  # what ends several operations at once; these themselves are never noted as ended
API = "torch.distributed."
_gone = 0  # nanoseconds; groups that stand now were made later


@dataclass(frozen=True)
class Operation:
    """One that was called and has not ended.

    Attributes:
        group: torch's name of the process group.
        number: sequence number of a collective in its group.
        name: ``all_reduce``, ``send``.
        peer: the rank to which a message goes or from which it comes; None for a collective.
        lines: of the cells, which called it, outermost first; empty where a thread of torch's did, as in a backward.
    """

    group: str
    number: int
    name: str
    peer: int | None
    lines: list[str]


def explain(state: RankState, since: int) -> RankState:
    """Return what a rank is doing with the operation in which it waits, where its own stack does not tell.

    Args:
        state: what the stack and the recorder's list of collectives have told.
        since: nanoseconds on ``time.time_ns``'s clock; what was called since then belongs to the present cell.
    """
    if not _early():
        return state
    waiting = unfinished(since)
    if not waiting:
        return replace(state, collectives=[*state.collectives, *_meeting(state)])
    first = waiting[0]
    behind = {(entry.group, entry.number) for entry in waiting if entry.peer is None} - {(first.group, first.number)}
    told = [called for called in state.collectives if called.done or (called.group, called.number) not in behind]
    if first.peer is None:
        told = [replace(called, lines=first.lines) if _is(called, first) else called for called in told]
    state = replace(state, collectives=told)
    if state.draining:
        state = replace(state, lines=first.lines, stack=[f"{API}{first.name}"])
    if not state.call or (state.call.startswith("torch.") and not state.call.startswith(API)):
        peers = {} if first.peer is None else {PEER[first.name]: first.peer}
        state = replace(state, call=f"{API}{first.name}", peers=peers)
    return state


def unfinished(since: int = 0) -> list[Operation]:
    """Return the operations that this rank has called and that have not ended, oldest first.

    Args:
        since: see :func:`explain`.
    """
    found = []
    for backend in _early():
        entries = [entry for entry in _entries(backend) if _created(entry) > _gone]
        batches = [entry for entry in entries if _name(entry) == BATCH and _has_ended(entry)]
        ended = {_batch(entry, messages) for entry in batches for messages in (False, True)}
        for entry in entries:
            if not _has_ended(entry) and _batch(entry, entry["is_p2p"]) not in ended and _name(entry) != BATCH:
                found.append(entry)
    ranks = _numbers()
    present = sorted((entry for entry in found if entry["process_group"][0] in ranks), key=_created)
    return [_operation(entry, ranks[entry["process_group"][0]], since) for entry in present]


def forget() -> None:
    """Take what was called until now for gone: its groups are, also where it was never noted as ended."""
    global _gone
    _gone = time.time_ns()


def progress() -> int:
    """Return a number that grows with every operation that is called or ends on this rank; 0 where calls tell all."""
    count = 0
    for backend in _early():
        entries = json.loads(_dump(backend.recorder)(includeCollectives=True, onlyActive=False)).get("entries", ())
        count += max((entry["record_id"] + 1 for entry in entries), default=0)
        count += max((entry["record_id"] + 1 for entry in entries if _has_ended(entry)), default=0)
    return count


def _early() -> list[Backend]:
    """Return the backends of this rank's groups whose calls come back before they are done."""
    world = torchs_groups()
    configs = [] if world is None else list(world.pg_backend_config.values())
    names = {backend.name for config in configs for backend in of_group(config)}
    return [backend for backend in BACKENDS if backend.stacks and backend.name in names and _dump(backend.stacks)]


def _dump(name: str) -> Any:
    return getattr(sys.modules["torch._C._distributed_c10d"], name, None)


def _entries(backend: Backend) -> Sequence[dict]:
    # Written by torch in this very process, for this call: nothing from outside is unpickled.
    with without_compiler():
        told = _dump(backend.stacks)(includeCollectives=True, includeStackTraces=True, onlyActive=False)
    return pickle.loads(told).get("entries", ())


def _has_ended(entry: Mapping[str, Any]) -> bool:
    return bool(entry["retired"]) or entry.get("state") == COMPLETED


def _name(entry: Mapping[str, Any]) -> str:
    backend, _, name = entry["profiling_name"].rpartition(":")  # "nccl:all_reduce", "nccl:recv 0<-1"
    return named(backend).operations.get(name, name)


def _batch(entry: Mapping[str, Any], messages: bool) -> tuple[str, bool, int]:
    """Return what the messages, or the collectives, of one batch have in common with the entry that ends it."""
    return entry["process_group"][0], messages, entry["p2p_seq_id" if messages else "collective_seq_id"]


def _created(entry: Mapping[str, Any]) -> int:
    return entry["time_created_ns"]


def _numbers() -> dict[str, dict[int, int]]:
    """Return for each group its ranks by their numbers in it."""
    world = torchs_groups()
    if world is None:
        return {}
    members = {name: world.pg_group_ranks.get(group, {}) for group, name in process_groups(world).items()}
    return {name: {number: rank for rank, number in ranks.items()} for name, ranks in members.items()}


def _operation(entry: Mapping[str, Any], ranks: Mapping[int, int], since: int) -> Operation:
    name, peer = _name(entry), None
    if message := MESSAGE.fullmatch(name):
        name, number = message[1], int(message[3])
        peer = ranks.get(number, number)
    lines = lines_of(entry.get("frames", ()), _created(entry) >= since)
    return Operation(entry["process_group"][0], entry["collective_seq_id"], name, peer, lines)


def _is(called: Collective, operation: Operation) -> bool:
    return not called.done and (called.group, called.number) == (operation.group, operation.number)


def _meeting(state: RankState) -> list[Collective]:
    """Return the collective in whose call a rank still is: its group connects the ranks first, and notes it then."""
    call = next((name for name in state.stack if name.startswith(API) and name.count(".") == API.count(".")), "")
    world = torchs_groups()
    if not call or world is None:
        return []
    found = []
    for group, name in process_groups(world).items():
        noted = max((called.number for called in state.collectives if called.group == name), default=0)
        number = group._get_sequence_number_for_group()
        backends = [backend for backend in of_group(world.pg_backend_config.get(group, "")) if backend.stacks]
        if backends and number > noted:
            operation = call.removeprefix(API)
            found.append(Collective(name, number, operation, [], "", done=False, backend=backends[0].name))
    return found
