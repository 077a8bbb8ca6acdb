"""Print where this process stands, and how many threads torchrun allows it.

torchrun --standalone --nproc-per-node=2 where.py
"""

import os

NAMES = ["RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS"]
line = " ".join(f"{name}={os.environ.get(name)}" for name in NAMES)
print(f"{line}\n", end="")  # in one write: the lines of two ranks do not mix
