"""Are these computers ready for a job? The chapter *two-computers* runs it under torchrun.

On each of two computers, with its own node rank:

    torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=computer1 --master-port=29500 preflight.py
"""

import os
import platform
import socket
import time
from datetime import timedelta

import torch
import torch.distributed as dist

on_gpu, local_rank = torch.cuda.is_available(), int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
# torch's own patience is ten minutes or half an hour; a first try should say sooner that nobody came.
dist.init_process_group("nccl" if on_gpu else "gloo", timeout=timedelta(seconds=60))
rank, ranks = dist.get_rank(), dist.get_world_size()

about = {"python": platform.python_version(), "torch": torch.__version__}
about["NCCL"] = torch.cuda.nccl.version() if on_gpu else None
everybody = [None] * ranks
dist.all_gather_object(everybody, (socket.gethostname(), about))

data = torch.ones(2_000_000, device=device)  # 8 MB
for _ in range(2):  # the first call also connects
    data.fill_(rank)
    if on_gpu:
        torch.cuda.synchronize()
    began = time.perf_counter()
    dist.all_reduce(data)
    right = (data == ranks * (ranks - 1) / 2).all().item()  # also waits for a GPU
    took = time.perf_counter() - began

if rank == 0:
    for number, (host, versions) in enumerate(everybody):
        print(f"rank {number} on {host}" + ("" if versions == about else f": {versions}, rank 0 has {about}"))
    same = all(versions == about for _, versions in everybody)
    print(f"the same versions: {same}, the right sum: {right}")
    bus = 64 * 2 * (ranks - 1) / ranks / took  # 64 Mbit
    print(f"bus bandwidth: {bus:.0f} Mbit/s")
dist.destroy_process_group()
