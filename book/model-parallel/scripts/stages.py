"""Train a model that is cut by its layers, a stage per rank, on CPU ranks or on GPUs, one per rank.

The chapter *splitting-layers* runs it under torchrun.

torchrun --standalone --nproc-per-node=3 stages.py
"""

import os

import torch
import torch.distributed as dist
from torch import nn

local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo", device_id=device if on_gpu else None)
rank, last = dist.get_rank(), dist.get_world_size() - 1

torch.manual_seed(rank)  # other weights, and other dropout, in each stage
stage = nn.Sequential()
stage.add_module(f"layer{rank}", nn.Linear(8, 8 if rank < last else 1))  # named as in the whole model
stage.to(device)
optimizer = torch.optim.SGD(stage.parameters(), lr=0.05)
rows = torch.randn(96, 8, generator=torch.Generator().manual_seed(0)).to(device)
goal = rows.sum(1, keepdim=True)

for _ in range(300):
    x = rows
    if rank > 0:
        x = torch.empty(96, 8, device=device)  # the shape and the dtype that arrive
        dist.recv(x, src=rank - 1)
        x.requires_grad_()
    y = stage(x) if rank < last else (stage(x) - goal).square().mean()
    gradient = torch.ones_like(y)  # 1 for the loss; elsewhere recv fills it
    if rank < last:
        dist.send(y.detach().contiguous(), dst=rank + 1)
        dist.recv(gradient, src=rank + 1)
    optimizer.zero_grad()
    y.backward(gradient)
    if rank > 0:
        dist.send(x.grad.contiguous(), dst=rank - 1)
    squares = nn.utils.get_total_norm([p.grad for p in stage.parameters() if p.grad is not None]).square()
    dist.all_reduce(squares)  # norms do not add up, their squares do
    nn.utils.clip_grads_with_norm_(stage.parameters(), 1.0, squares.sqrt())
    optimizer.step()

parts = [None] * (last + 1) if rank == 0 else None
dist.gather_object({name: value.cpu() for name, value in stage.state_dict().items()}, parts, dst=0)
if rank == 0:
    whole = {name: value for part in parts for name, value in part.items()}
    torch.save(whole, os.environ.get("CHECKPOINT", "checkpoint.pt"))
if rank == last:
    print(f"{last + 1} stages trained; the loss is below 0.01: {y.item() < 0.01}")
dist.destroy_process_group()
