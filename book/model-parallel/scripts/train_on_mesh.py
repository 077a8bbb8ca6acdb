"""Training on a mesh of data × tensor, on CPUs or with one GPU per rank. The chapter *meshes* runs it under torchrun.

torchrun --standalone --nproc-per-node=4 train_on_mesh.py 2

The argument is the size of a tensor group: keep the group inside a node.
"""

import logging
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from blocks import network, plan
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import parallelize_module
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

# torch logs that a tensor cut twice is gathered, or a norm added, in two calls.
logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)
local_rank = int(os.environ.get("LOCAL_RANK", 0))
on_gpu = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")

tensor = int(sys.argv[1])
shape = dist.get_world_size() // tensor, tensor  # the last dimension: neighbours, inside a node
mesh = init_device_mesh(device.type, shape, mesh_dim_names=("data", "tensor"))
model = network(blocks=2, width=16).to(device)
for block in model:  # cut first, then shard
    parallelize_module(block, mesh["tensor"], plan())
    fully_shard(block, mesh=mesh["data"])
fully_shard(model, mesh=mesh["data"])
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)  # after the cuts

generator = torch.Generator().manual_seed(0)
rows = torch.randn(96, 16, generator=generator)
data = TensorDataset(rows, rows.flip(1))
# The share is the place in "data": the ranks of a tensor group read equal rows.
sampler = DistributedSampler(data, mesh["data"].size(), mesh.get_local_rank("data"), shuffle=True)
norms = []
for epoch in range(20):
    sampler.set_epoch(epoch)
    for x, goal in DataLoader(data, batch_size=48 // mesh["data"].size(), sampler=sampler):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x.to(device)), goal.to(device))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)  # over the whole mesh
        norms.append(norm.full_tensor().item())
        optimizer.step()

options = StateDictOptions(full_state_dict=True, cpu_offload=True)
state = get_model_state_dict(model, options=options)  # all ranks call it, rank 0 gets it
if dist.get_rank() == 0:
    torch.save(state, os.environ.get("CHECKPOINT", "checkpoint.pt"))
    told = f"first norm {norms[0]:.2f}, clipped: {max(norms) > 0.5}"
    print(f"a mesh of {shape[0]} × {shape[1]}; {told}; the loss is below 0.1: {loss.item() < 0.1}")
dist.destroy_process_group()
