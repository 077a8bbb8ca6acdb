"""A loader that ends early, and when each rank comes to a call and leaves it. The chapter *hangs* runs it and draws it.

torchrun --standalone --nproc-per-node=3 last_batch.py

Each rank prints one line of JSON: when it began, its calls with the moments of coming and leaving (null where an error
ended the call), and the moment of the error, null where it got none.
"""

import json
import time
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
training = dist.new_group(timeout=timedelta(seconds=4))
dist.barrier()
seen = {"began": time.time(), "calls": [], "error": None}


def noted(name, call, *arguments, **options):
    """Call it, and note when this rank came and when it left."""
    seen["calls"].append([name, time.time(), None])
    call(*arguments, **options)
    seen["calls"][-1][2] = time.time()


try:
    for number in range(3 if rank == 2 else 4):
        time.sleep(1.2 if (rank, number) == (1, 1) else 0.4)  # rank 1 loads one batch slowly
        noted("all_reduce", dist.all_reduce, torch.ones(4), group=training)
except RuntimeError:
    seen["error"] = time.time()
noted("barrier", dist.barrier)  # before the evaluation
print(json.dumps(seen))
