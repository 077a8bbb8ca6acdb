"""DDP that talks less: one exchange for four micro-batches, in half the bytes. The chapter *talking-less* runs it.

torchrun --standalone --nproc-per-node=2 talking_less.py
"""

import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

local_rank = int(os.environ.get("LOCAL_RANK", 0))
on_gpu = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
alone = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
dist.init_process_group("nccl" if on_gpu else "gloo", **alone)
rank, world_size = dist.get_rank(), dist.get_world_size()


def half(dtype, bucket):
    """Average a bucket in a type of two bytes."""
    full = bucket.buffer()
    small = full.to(dtype) / dist.get_world_size()  # divide first: a sum can overflow
    work = dist.all_reduce(small, async_op=True)
    return work.get_future().then(lambda done: full.copy_(done.value()[0]))


def accumulate(ddp, loss_of, micro_batches):
    """Leave the mean gradient of all micro-batches in ``.grad``, with one exchange."""
    last = len(micro_batches) - 1
    for number, micro_batch in enumerate(micro_batches):
        with ddp.no_sync() if number < last else nullcontext():
            loss = loss_of(ddp, micro_batch)  # the forward decides whether the backward talks
            (loss / len(micro_batches)).backward()


sizes = []  # bytes of each exchange


def counted(dtype, bucket):
    """Note the bytes of an exchange, and start it."""
    sizes.append(bucket.buffer().numel() * dtype.itemsize)
    return half(dtype, bucket)


def square(ddp, points):
    """Return the mean error of a model that should add up its inputs."""
    return (ddp(points) - points.sum(1, keepdim=True)).square().mean()


torch.manual_seed(rank)  # every rank has points of its own; DDP starts from rank 0's weights
ddp = DDP(torch.nn.Linear(1000, 1).to(device))
ddp.register_comm_hook(torch.bfloat16, counted)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
points = torch.randn(64, 1000, device=device)
before = square(ddp.module, points).item()
for _ in range(20):
    optimizer.zero_grad()
    accumulate(ddp, square, points.split(16))
    optimizer.step()
better = square(ddp.module, points).item() < before / 2
if rank == 0:
    print(f"world size {world_size}: 80 micro-batches, {len(sizes)} exchanges of {sizes[0]} bytes, learns: {better}")
dist.destroy_process_group()
