"""Print how this process was told who it is, then add up 0 … 999 together with the other ranks.

torchrun --standalone --nproc-per-node=2 same.py
"""

import os
import sys
import time

STARTED = time.time()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

IMPORTED = time.time()
NAMES = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR"]


def told():
    """Say which arguments and variables this process was started with."""
    found = " ".join(name for name in NAMES if name in os.environ)
    return f"arguments {sys.argv[1:]}, environment {found or 'nothing'}"


def work(how):
    """Meet, add up this rank's share and everybody's, and print the sum."""
    dist.init_process_group("gloo")
    met = time.time()
    rank, size = dist.get_rank(), dist.get_world_size()
    total = torch.tensor(sum(range(rank, 1000, size)))
    dist.all_reduce(total)
    print(f"rank {rank}: {how}, sum {total.item()}\n", end="")
    dist.destroy_process_group()
    if "STAMPS" in os.environ:  # for the figure: when this process got how far
        with open(f"{os.environ['STAMPS']}-{rank}", "w") as file:
            print(STARTED, IMPORTED, met, time.time(), file=file)


if __name__ == "__main__":
    work(told())
