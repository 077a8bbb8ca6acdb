"""How fast an all_reduce is between your ranks. The chapter *cost-of-talking* runs it under torchrun.

torchrun --standalone --nproc-per-node=4 bandwidth.py
"""

import os
import time

import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
ranks, calls = dist.get_world_size(), 5


def seconds(size):
    """Time an all_reduce of so many bytes on the slowest rank."""
    x = torch.zeros(size // 4, device=device)
    for turn in range(1 + calls):
        if turn == 1:  # the first call connects, and brings all ranks together
            if on_gpu:
                torch.cuda.synchronize()
            began = time.perf_counter()
        dist.all_reduce(x)
    if on_gpu:
        torch.cuda.synchronize()
    slowest = torch.tensor((time.perf_counter() - began) / calls, device=device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()


if dist.get_rank() == 0:
    print("bytes, milliseconds, algorithm bandwidth in GB/s, bus bandwidth in GB/s")
sizes = [4_000, 32_000, 256_000, 2_000_000, 16_000_000]
sizes += [1_000_000_000] if on_gpu else []
times = []
for size in sizes:
    times.append(seconds(size))
    algorithm = size / times[-1] / 1e9
    bus = algorithm * 2 * (ranks - 1) / ranks  # compare it with the data sheet
    if dist.get_rank() == 0:
        print(f"{size:8} {1e3 * times[-1]:10.3f} {algorithm:8.4f} {bus:8.4f}")

# The smallest tensor costs little more than its steps, the largest its bytes.
if dist.get_rank() == 0 and ranks > 1:
    steps = 2 * (ranks - 1)
    alpha = times[0] / steps
    beta = (times[-1] - times[0]) / sizes[-1] * ranks / steps
    half = ranks * alpha / beta / 1e6
    print(f"alpha: {1e6 * alpha:.0f} µs, half of the time at {half:.3f} MB")
dist.destroy_process_group()
