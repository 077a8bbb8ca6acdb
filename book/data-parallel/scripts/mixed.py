"""Mixed precision under DDP, for CPU ranks or GPUs, one per rank. The chapter *mixed-precision* runs it under torchrun.

torchrun --standalone --nproc-per-node=2 mixed.py float16
python mixed.py bfloat16
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

kind = getattr(torch, sys.argv[1] if len(sys.argv) > 1 else "bfloat16")
local_rank = int(os.environ.get("LOCAL_RANK", 0))
on_gpu = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
alone = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
dist.init_process_group("nccl" if on_gpu else "gloo", **alone)
rank, world_size = dist.get_rank(), dist.get_world_size()

ddp = DDP(torch.nn.Linear(8, 3).to(device), device_ids=[local_rank] if on_gpu else None)  # weights stay float32
optimizer = torch.optim.SGD(ddp.parameters(), lr=1.0)
scaler = torch.amp.GradScaler(device.type, enabled=kind == torch.float16)  # bfloat16 needs none
rows = torch.randn(96, 8, generator=torch.Generator().manual_seed(0)).to(device)
targets = rows[:, :3].argmax(1)

for _ in range(100):
    with torch.autocast(device.type, dtype=kind):
        loss = F.cross_entropy(ddp(rows[rank::world_size]), targets[rank::world_size])
    optimizer.zero_grad()
    scaler.scale(loss).backward()  # outside autocast; DDP averages the scaled gradients, in float32
    scaler.unscale_(optimizer)  # after the average, before the norm
    norm = torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
    scaler.step(optimizer)  # skips on all ranks where one overflowed
    scaler.update()

if rank == 0:
    with torch.no_grad():
        correct = (ddp.module(rows).argmax(1) == targets).float().mean().item()
    state = {"model": ddp.module.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}
    torch.save(state, os.environ.get("CHECKPOINT", "checkpoint.pt"))
    print(f"world size {world_size}, {kind}: norm below 1: {norm < 1}, more than 90 % correct: {correct > 0.9}")
dist.destroy_process_group()
