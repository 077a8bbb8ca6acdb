"""What the exchange adds to forward and backward of a training step.

    torchrun --standalone --nproc-per-node=2 efficiency.py

Runs on CPUs with gloo, or with one GPU per rank on NCCL.
"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

on_gpu = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group(dist.get_default_backend_for_device(device))
model = DDP(nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).to(device))  # put yours here
rows = torch.randn(256, 512, device=device)


def step():
    """Compute gradients, as your job does."""
    model(rows).square().mean().backward()


def seconds(steps=10):
    """Time one step: on the slowest rank, and on this one."""
    for turn in range(3 + steps):
        if turn == 3:  # the first steps connect the ranks and form the buckets
            if on_gpu:
                torch.cuda.synchronize()
            began = time.perf_counter()
        step()
    if on_gpu:
        torch.cuda.synchronize()
    own = (time.perf_counter() - began) / steps
    slowest = torch.tensor(own, device=device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item(), own


whole, _ = seconds()
with model.no_sync():  # the same step, without the exchange
    alone, own = seconds()
model.zero_grad()  # what these steps have added up
times = [0.0] * dist.get_world_size()
dist.all_gather_object(times, own)
if dist.get_rank() == 0:
    print(f"step, ms: {1000 * whole:.2f}")
    print(f"of which computing, ms: {1000 * alone:.2f}")
    print(f"computing, % of the step: {100 * alone / whole:.0f}")
    print(f"forward and backward, times: {whole / alone:.2f}")
    slowest = times.index(max(times))
    print(f"slowest rank: {slowest}, times the fastest: {max(times) / min(times):.2f}")
dist.destroy_process_group()
