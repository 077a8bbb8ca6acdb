"""Meet under torchrun or alone, on GPUs or on the CPU, and add up a one from every process.

torchrun --standalone --nproc-per-node=2 meet.py
python meet.py
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

local_rank = int(os.environ.get("LOCAL_RANK", 0))
device = torch.device("cpu")
if torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1)):  # a GPU for each rank here, or none
    # Some launchers show each process one GPU only, and then its number is 0.
    device = torch.device("cuda", local_rank if torch.cuda.device_count() > 1 else 0)
    torch.cuda.set_device(device)
meeting = {"timeout": timedelta(minutes=30)}  # longer than the longest time that one rank works alone
if "RANK" not in os.environ:  # nobody has launched this process: a group of one
    meeting.update(store=dist.HashStore(), rank=0, world_size=1)
if device.type == "cuda":
    meeting.update(device_id=device)  # NCCL connects now, and a fault shows here
dist.init_process_group(dist.get_default_backend_for_device(device), **meeting)

ones = torch.ones(1, device=device)
dist.all_reduce(ones)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}, sum {int(ones)}\n", end="")
dist.destroy_process_group()
