"""The first lines of a program for CPUs or GPUs, on one node or many. *rank-local-rank-world-size* runs it.

torchrun --standalone --nproc-per-node=4 own_device.py
"""

import os

import torch
import torch.distributed as dist

rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
local_rank, node_rank = int(os.environ["LOCAL_RANK"]), int(os.environ["GROUP_RANK"])

device = torch.device("cpu")
if torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"]):  # a GPU for each rank here, or the CPU for all
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)  # before init_process_group, and before the first tensor on a GPU
if device.type == "cuda":
    dist.init_process_group("nccl", device_id=device)  # NCCL connects now, and a wrong device shows here
else:
    dist.init_process_group("gloo")

total = torch.tensor([rank], device=device)
dist.all_reduce(total)
print(f"rank {rank} of {world_size}: local rank {local_rank} on node {node_rank}, sum of ranks {total.item()}\n", end="")
dist.destroy_process_group()
