"""A pipeline that trains: one stage per rank, clipped by the norm of the whole model. The chapter *pipelines* runs it.

torchrun --standalone --nproc-per-node=4 train_pipeline.py
"""

import os

import torch
import torch.distributed as dist
from pipeline import Pipeline, one_f_one_b

local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
dist.barrier()  # all ranks together, before the first pair talks
rank, stages = dist.get_rank(), dist.get_world_size()

torch.manual_seed(rank)  # each rank makes its own stage and no other
stage = torch.nn.Linear(32, 32).to(device)
line = Pipeline(stage, list(range(stages)), width=32)
optimizer = torch.optim.Adam(stage.parameters(), lr=0.01)
batch = torch.randn(64, 32, generator=torch.Generator().manual_seed(0)).to(device)

losses, clipped = [], 0
for _ in range(50):
    optimizer.zero_grad()
    losses.append(line.step(one_f_one_b, batch, batch.sin(), 8, torch.nn.functional.mse_loss))
    squares = sum(p.grad.square().sum() for p in stage.parameters() if p.grad is not None)
    dist.all_reduce(squares)  # the squared norm of the whole model
    torch.nn.utils.clip_grads_with_norm_(stage.parameters(), 0.05, squares.sqrt())
    clipped += squares.sqrt().item() > 0.05
    optimizer.step()

if line.last:
    print(f"{stages} stages trained, clipped: {clipped > 0}; the loss fell below a half: {losses[-1] < losses[0] / 2}")
dist.destroy_process_group()
