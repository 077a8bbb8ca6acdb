"""Six hangs, one after another, and what torch says when a group's timeout is over. The chapter *hangs* runs it.

torchrun --standalone --nproc-per-node=3 silent.py

Each rank prints one line of JSON per hang: its name, the words of the error (null where the rank got none), and what
the rank noted: when the hang began, its calls with the moments of coming and leaving (null where an error ended the
call), and the moment of the error. In the first hang each rank also writes its stack to stderr, while the others wait.
"""

import faulthandler
import json
import time
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
calls = []


@contextmanager
def noted(name):
    """Note when this rank comes to a call and when it leaves it; a call that raises is never left."""
    calls.append([name, time.time(), None])
    yield
    calls[-1][2] = time.time()


def loader(group, _):
    """Rank 2 has a batch less, and rank 1 loads its second batch slowly."""
    batches = 3 if rank == 2 else 4
    for batch in range(batches):
        time.sleep(1 if (rank, batch) == (1, 1) else 0.2)
        with noted("all_reduce"):
            dist.all_reduce(torch.ones(4), group=group)


def late(group, _):
    """Rank 1 comes when the others have given up."""
    if rank == 1:
        time.sleep(2)
    dist.all_reduce(torch.ones(4), group=group)


def shapes(group, _):
    """The last batch of rank 2 is shorter."""
    rows = 3 if rank == 2 else 4
    dist.all_reduce(torch.ones(rows), group=group)


def alone(group, _):
    """Rank 0 evaluates alone, with a collective."""
    if rank == 0:
        dist.all_reduce(torch.ones(2), group=group)
    dist.barrier(group)


def order(group, _):
    """Rank 0 calls another collective."""
    if rank == 0:
        dist.broadcast(torch.ones(4), src=0, group=group)
    else:
        dist.all_reduce(torch.ones(4), group=group)


def crossed(group, other):
    """Rank 0 uses the two groups in another order."""
    groups = [other, group] if rank == 0 else [group, other]
    for each in groups:
        dist.all_reduce(torch.ones(4), group=each)


for fault in loader, late, shapes, alone, order, crossed:
    timeout = timedelta(seconds=3 if fault is loader else 1)  # the default is 30 minutes
    groups = dist.new_group(timeout=timeout), dist.new_group(timeout=timeout)
    words = failed = None
    calls.clear()
    dist.barrier()
    began = time.time()
    if fault is loader:
        faulthandler.dump_traceback_later(3)
    try:
        fault(*groups)
    except RuntimeError as error:
        words, failed = str(error), time.time()
    with noted("barrier"):
        dist.barrier()
    faulthandler.cancel_dump_traceback_later()
    told = json.dumps([fault.__name__, words, {"began": began, "calls": calls, "error": failed}])
    print(f"{told}\n", end="")  # in one write: ranks that share an output would mix their lines

dist.destroy_process_group()
