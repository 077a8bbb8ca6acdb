"""Four detectors for a job that runs without an error. The chapter *silently-wrong* runs them under torchrun.

torchrun --standalone --nproc-per-node=3 audit.py

All ranks call each of them, at the same place of the program. What comes back is empty if nothing is wrong.
"""

import hashlib
from collections import Counter

import numpy
import torch
import torch.distributed as dist


def from_all(thing):
    """What each rank has, in the order of the ranks."""
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, thing)
    return found


def fingerprint(thing):
    """Sixteen characters for a value: all bits of a tensor or an array, so NaN equals NaN; of other things the repr."""
    bits = b""
    if isinstance(thing, torch.Tensor):
        bits = thing.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        thing = thing.dtype, thing.shape
    elif isinstance(thing, numpy.ndarray) and not thing.dtype.hasobject:
        bits, thing = thing.tobytes(), (thing.dtype, thing.shape)
    elif isinstance(thing, (dict, list, tuple, numpy.ndarray)):  # a repr leaves out the middle of a long array
        thing = type(thing), [fingerprint(part) for part in (thing.items() if isinstance(thing, dict) else thing)]
    return hashlib.sha256(repr(thing).encode() + bits).hexdigest()[:16]


def differ(named):
    """Names of values that are not equal on all ranks: parameters, averaged gradients, rate, a set after sorting."""
    prints = from_all({name: fingerprint(value) for name, value in named.items()})
    names = dict.fromkeys(name for of_rank in prints for name in of_rank)
    return [name for name in names if len({of_rank.get(name) for of_rank in prints}) > 1]


def alike(named):
    """Names of values that two ranks share although no two should: rows, a rank's own gradients, random masks."""
    prints = from_all({name: fingerprint(value) for name, value in named.items()})
    return [name for name in prints[0] if len({of_rank.get(name) for of_rank in prints}) < len(prints)]


def seen_twice(rows):
    """Rows that the job has read more than once, with the number of times."""
    counts = Counter(row for of_rank in from_all(rows.tolist() if torch.is_tensor(rows) else list(rows)) for row in of_rank)
    return {row: count for row, count in sorted(counts.items()) if count > 1}


def wrong_loss(logged, total, rows):
    """The loss of the job, if rank 0 logs another: total is the sum over a rank's own rows."""
    told = from_all((logged, total, rows))
    right = sum(total for _, total, _ in told) / sum(rows for _, _, rows in told)
    return {} if abs(told[0][0] - right) <= 1e-4 * abs(right) else {"logged": told[0][0], "right": right}
