"""Leave out a bad batch on all ranks or on none, and leave stacks when nothing moves. The chapter *drill* runs it.

torchrun --standalone --nproc-per-node=4 together.py
"""

import faulthandler
import os

import torch
import torch.distributed as dist

local_rank = int(os.environ.get("LOCAL_RANK", 0))
on_gpu = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
rank = dist.get_rank()

batches = torch.arange(6.0, device=device)
if rank == 1:
    batches[3] = float("nan")  # one bad batch, on one rank

trained = 0
for batch in batches:
    faulthandler.dump_traceback_later(300)  # seconds without a step; then stacks go to stderr
    fine = batch.isfinite().int()
    dist.all_reduce(fine, dist.ReduceOp.MIN)  # 0 everywhere if one batch is bad
    if not fine:
        continue
    dist.all_reduce(batch)  # your training step
    trained += 1
faulthandler.cancel_dump_traceback_later()

counts = torch.tensor([trained, -trained], device=device)
dist.all_reduce(counts, dist.ReduceOp.MAX)
if rank == 0:
    equal = counts[0] == -counts[1]
    print(f"{trained} of {len(batches)} batches trained; equal on all ranks: {equal.item()}")
dist.destroy_process_group()
