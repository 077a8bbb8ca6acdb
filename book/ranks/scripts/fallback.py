"""Meet under torchrun, by hand, or alone, and add up a one from every process. CPU only.

torchrun --standalone --nproc-per-node=2 fallback.py
python fallback.py
python fallback.py --dist-url tcp://ADDRESS:PORT --world-size 2 --rank 0   (and elsewhere with --rank 1)
"""

import argparse
import os

import torch
import torch.distributed as dist

told_by = os.environ.get
parser = argparse.ArgumentParser()
parser.add_argument("--dist-url", default="env://")
parser.add_argument("--rank", type=int, default=told_by("RANK", -1))
parser.add_argument("--local-rank", type=int, default=told_by("LOCAL_RANK", -1))
parser.add_argument("--world-size", type=int, default=told_by("WORLD_SIZE", 1))
told = parser.parse_args()

if told.rank == -1:  # nobody has said who I am: a group of one
    if told.world_size > 1:
        parser.error("--rank is missing: which of the processes is this?")
    meeting = {"store": dist.HashStore(), "rank": 0, "world_size": 1}
else:
    numbers = {"rank": told.rank, "world_size": told.world_size}
    meeting = {"init_method": told.dist_url, **numbers}
dist.init_process_group("gloo", **meeting)

# From here on nothing asks how the program was started.
ones = torch.ones(1)
dist.all_reduce(ones)
rank, size = dist.get_rank(), dist.get_world_size()
# The end of the line goes with it: processes that share an output would mix their lines otherwise.
print(f"rank {rank} of {size}, local rank {told.local_rank}, sum {int(ones)}\n", end="")
dist.destroy_process_group()
