"""Fit a line to a curve: alone, or with as many ranks as a launcher starts.

python train.py
torchrun --standalone --nproc-per-node=2 train.py
"""

import os

import torch
import torch.distributed as dist

size = int(os.environ.get("WORLD_SIZE", 1))
rank = int(os.environ.get("RANK", 0))
if size > 1:
    dist.init_process_group("gloo")

x = torch.linspace(-1, 1, 120, dtype=torch.float64)
y = x**2 + 3 * x + 2
share = len(x) // size  # 120 points divide by 1, 2, 3 and 4 ranks
mine = slice(rank * share, (rank + 1) * share)
weight = torch.zeros(2, dtype=torch.float64, requires_grad=True)
for _ in range(20):
    loss = ((weight[0] * x[mine] + weight[1] - y[mine]) ** 2).mean()
    loss.backward()
    if size > 1:
        dist.all_reduce(weight.grad, op=dist.ReduceOp.SUM)
    with torch.no_grad():
        weight -= 0.1 * weight.grad / size
    weight.grad = None

if rank == 0:
    ranks = "rank" if size == 1 else "ranks"
    print(f"{size} {ranks}: slope {weight[0]:.6f}, offset {weight[1]:.6f}")
if size > 1:
    dist.destroy_process_group()
