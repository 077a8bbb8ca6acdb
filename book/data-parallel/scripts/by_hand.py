"""Data parallelism without DDP, for CPU ranks or GPUs, one per rank. The chapter *by-hand* runs it under torchrun.

torchrun --standalone --nproc-per-node=4 by_hand.py
"""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F


def start_alike(model):
    """Give every rank what rank 0 holds: parameters and buffers."""
    for tensor in [*model.parameters(), *model.buffers()]:
        dist.broadcast(tensor.detach(), src=0)


def sum_gradients(model):
    """Leave the sum over all ranks in every gradient, with one call; all parameters have one dtype.

    A parameter that no rank used gets zeros, so weight decay still changes it.
    """
    trainable = [p for p in model.parameters() if p.requires_grad]
    for p in trainable:
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
    joined = torch.cat([p.grad.flatten() for p in trainable])
    dist.all_reduce(joined)
    for p, part in zip(trainable, joined.split([p.numel() for p in trainable]), strict=True):
        p.grad.copy_(part.view_as(p))


local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(rank)  # differs on purpose: start_alike makes up for it
model = torch.nn.Linear(8, 3).to(device)
start_alike(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
rows = torch.randn(152, 8, generator=torch.Generator().manual_seed(0)).to(device)
targets = rows[:, :3].argmax(1)

for _ in range(60):
    for batch in torch.arange(152, device=device).split(50):  # 50, 50, 50 and 2 rows
        mine = batch[rank::world_size]
        count = torch.tensor(len(mine), device=device)
        dist.all_reduce(count)
        loss = F.cross_entropy(model(rows[mine]), targets[mine], reduction="sum") / count
        optimizer.zero_grad()
        loss.backward()
        sum_gradients(model)
        optimizer.step()

print(f"rank {rank}: {len(mine)} rows of the last batch\n", end="")
if rank == 0:
    correct = (model(rows).argmax(1) == targets).float().mean().item()
    torch.save(model.state_dict(), os.environ.get("WEIGHTS", "weights.pt"))
    print(f"world size {world_size}: more than 90 % correct: {correct > 0.9}")
dist.destroy_process_group()
