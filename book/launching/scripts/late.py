"""Leave rank 0 alone in an all_reduce, and see how long it waits. The chapter *from-spawn-to-torchrun* runs it.

torchrun --standalone --nproc-per-node=2 late.py
"""

import time
from datetime import timedelta

import torch
import torch.distributed as dist

import ranklab

device = ranklab.device()
on_gpu = device.type == "cuda"
if on_gpu:
    torch.cuda.set_device(device)
backend = dist.get_default_backend_for_device(device)
dist.init_process_group(backend, timeout=timedelta(seconds=10), device_id=device if on_gpu else None)
total = torch.ones(1, device=device)
dist.all_reduce(total)
print("together:", int(total), flush=True)

if dist.get_rank() == 0:
    dist.all_reduce(total)  # nobody else calls it
    print("called:", on_gpu, flush=True)
    print("alone:", int(total), flush=True)
else:
    time.sleep(60)  # busy with something else, for longer than the timeout
