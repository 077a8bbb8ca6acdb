"""What torch's flight recorder has noted in this rank: the latest collectives, by group and sequence number.

The recorder (torch/csrc/distributed/c10d/FlightRecorder.hpp, 2.13) notes every collective; sends and receives of the
backend for CPUs are not in it. Runs inside a rank, in the watchdog's thread. Standard library only; torch is looked up
where the reader has imported it.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from ..state import Collective
from ..system.backends import BACKENDS, named

BUFFER = "TORCH_FR_BUFFER_SIZE"
COMPLETED = "completed"  # the recorder's word for an operation that has ended
# Reading takes 8 µs for each entry, and only the latest tell why ranks wait.
ENTRIES = "256"
TOLD = 64  # an answer holds at most so many of them for each group
# torch's names of types (torch/csrc/api: ScalarType), as its users write them
TYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
_made: dict[str, int] = {}  # when the group of each name was made, in nanoseconds on time.time_ns's clock


class _Dated(dict):
    """torch's table of groups and their names, which also keeps when each came in."""

    def __setitem__(self, group: Any, name: str) -> None:
        _made[name] = time.time_ns()
        super().__setitem__(group, name)


def date_groups() -> None:
    """Keep from now on when each of this rank's groups is made, however its ranks meet.

    A group that was destroyed and made anew has the same name, and counts from 1 again: also sends and receives, of
    which the recorder has no entry that would tell the two groups apart. torch keeps no time itself (``_pg_names`` in
    torch/distributed/distributed_c10d.py, 2.13).
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return
    c10d = distributed.distributed_c10d
    if not isinstance(c10d._pg_names, _Dated):
        c10d._pg_names = _Dated(c10d._pg_names)


def groups() -> dict[str, list[int]]:
    """Return the process groups of this rank: name to ranks; empty where there is none."""
    world = torchs_groups()
    if world is None:
        return {}
    return {name: sorted(world.pg_group_ranks.get(group, ())) for group, name in process_groups(world).items()}


def calls() -> int:
    """Return how many collectives this rank has called on its present groups; costs microseconds."""
    world = torchs_groups()
    if world is None:
        return 0
    return sum(group._get_sequence_number_for_group() for group in list(world.pg_map))


def collectives(since: int = 0) -> list[Collective]:
    """Return the latest collectives of this rank's present groups, oldest first.

    Args:
        since: nanoseconds on ``time.time_ns``'s clock; what was called since then is recent.
    """
    world = torchs_groups()
    if world is None:
        return []
    called = {name: group._get_sequence_number_for_group() for group, name in process_groups(world).items()}
    found: dict[str, list[Collective]] = {name: [] for name, count in called.items() if count}
    for entry in _entries():
        group, number = entry["process_group"][0], entry["collective_seq_id"]
        if group not in found or number > called[group] or entry.get("is_p2p"):
            continue
        if entry["time_created_ns"] < _made.get(group, 0):
            continue  # of an earlier group of that name
        earlier = found[group]
        if earlier and number <= earlier[-1].number:
            earlier.clear()
        earlier.append(_collective(entry, group, since))
    return [told for entries in found.values() for told in entries[-TOLD:]]


def _collective(entry: dict, group: str, since: int) -> Collective:
    types = entry["input_dtypes"]
    backend, _, noted = entry["profiling_name"].rpartition(":")  # "gloo:all_reduce"
    name = named(backend).operations.get(noted, noted)
    return Collective(
        group=group,
        number=entry["collective_seq_id"],
        name=name,
        sizes=entry["input_sizes"] if name == noted else [],  # what carries it out is not the reader's
        type=TYPES.get(types[0], types[0]) if types else "",
        # A backend whose calls come back early retires an entry a moment after it was done.
        done=bool(entry["retired"]) or entry.get("state") == COMPLETED,
        recent=entry["time_created_ns"] >= since,
        backend=backend,
    )


def torchs_groups() -> Any:
    """Return torch's own table of process groups, or None where the reader has made none."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.distributed_c10d._world


def process_groups(world: Any) -> dict[Any, str]:
    """Return the groups and their names; the rank's own thread may be destroying one of them meanwhile."""
    names = {group: world.pg_names.get(group) for group in list(world.pg_map)}
    return {group: name for group, name in names.items() if name is not None}


def _entries() -> list[dict]:
    core = sys.modules["torch._C._distributed_c10d"]
    entries = []
    for name in dict.fromkeys(backend.recorder for backend in BACKENDS):
        if dump := getattr(core, name, None):  # missing where this torch was built without that backend
            entries += json.loads(dump(includeCollectives=True, onlyActive=False)).get("entries", ())
    return entries
