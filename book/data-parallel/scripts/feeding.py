"""Feed DDP's ranks, resume in the middle of an epoch, test without padding. The chapter *feeding-ranks* runs it.

torchrun --standalone --nproc-per-node=3 feeding.py
"""

import os
from itertools import islice

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

points = torch.randn(196, 8, generator=torch.Generator().manual_seed(0))
goal = points.sum(1, keepdim=True)
train_set = TensorDataset(torch.arange(96), points[:96], goal[:96])
sampler = DistributedSampler(train_set)  # it shuffles: no shuffle=True in the loader
loader = DataLoader(train_set, batch_size=12 // world_size, sampler=sampler, pin_memory=on_gpu)


def train(ddp, optimizer, epoch, first, last):
    """Train the steps of an epoch from first up to last; return the numbers of the rows."""
    sampler.set_epoch(epoch)
    read = []
    for rows, point, wanted in islice(loader, first, last):
        loss = (ddp(point.to(device, non_blocking=True)) - wanted.to(device, non_blocking=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        read.append(rows)
    return read


ddp = DDP(torch.nn.Linear(8, 1).to(device), device_ids=[local_rank] if on_gpu else None)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.2)
read = train(ddp, optimizer, 0, 0, 3)  # the job ends here; a checkpoint holds epoch 0 and 3 steps
read += train(ddp, optimizer, 0, len(read), None)
times = torch.bincount(torch.cat(read), minlength=96).to(device)
dist.all_reduce(times)

mine = slice(96 + rank, None, world_size)  # a stride without padding
with torch.no_grad():
    close = (ddp.module(points[mine].to(device)) - goal[mine].to(device)).abs() < 1
counts = torch.tensor([close.sum(), len(close)], device=device)
dist.all_reduce(counts)
if rank == 0:
    once = (times == 1).sum().item()
    close, tested = counts.tolist()
    print(f"{len(read)} steps; {once} of 96 rows read once; tested {tested}, over 90 close: {close > 90}")
dist.destroy_process_group()
