"""A DDP training loop for CPU ranks, or for GPUs, one per rank. The chapter *ddp* runs it under torchrun.

torchrun --standalone --nproc-per-node=3 train.py
"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])  # a GPU for each, or the CPU for all
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

ddp = DDP(torch.nn.Linear(8, 1).to(device), device_ids=[local_rank] if on_gpu else None)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.5)
rows = torch.randn(96, 8, generator=torch.Generator().manual_seed(0)).to(device)
if len(rows) % world_size:
    raise SystemExit(f"The mean is exact only for equal shares: choose a number of ranks that divides {len(rows)}.")
goal = rows.sum(1, keepdim=True)

for _ in range(200):
    loss = (ddp(rows[rank::world_size]) - goal[rank::world_size]).square().mean()
    optimizer.zero_grad()
    loss.backward()  # every rank comes here equally often
    torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)  # after backward: the mean is clipped, on all ranks alike
    optimizer.step()

if rank == 0:
    with torch.no_grad():
        error = (ddp.module.eval()(rows) - goal).abs().max().item()  # the bare model never talks
    ddp.module.train()
    model, state = ddp.module.state_dict(), optimizer.state_dict()  # names without the prefix `module.`
    torch.save({"model": model, "optimizer": state, "step": 200}, os.environ.get("CHECKPOINT", "checkpoint.pt"))
    print(f"{world_size} ranks trained; the largest error is below 0.01: {error < 0.01}")
dist.destroy_process_group()
