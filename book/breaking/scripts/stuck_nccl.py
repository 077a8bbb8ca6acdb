"""Rank 0 calls a collective alone, on NCCL with a timeout of ten seconds: what the watchdog writes is in stderr.

torchrun --standalone --nproc-per-node=2 stuck_nccl.py

The chapter *hangs* runs it where there is a GPU.
"""

import time
from datetime import timedelta

import torch
import torch.distributed as dist

import ranklab

device = ranklab.device()
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device, timeout=timedelta(seconds=10))
total = torch.ones(4, device=device)
dist.all_reduce(total)
torch.cuda.synchronize()
if dist.get_rank() == 0:
    dist.all_reduce(total)
    print("rank 0: the call has returned", flush=True)
    torch.cuda.synchronize()
else:
    time.sleep(60)
