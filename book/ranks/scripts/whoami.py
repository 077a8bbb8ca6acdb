"""Print who this process is, as torchrun told it; run it with torchrun."""

import os

RANKS = ["RANK", "LOCAL_RANK", "GROUP_RANK"]
SIZES = ["WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE"]
for names in RANKS, SIZES, ["NODE_RANK", "WORLD_RANK"]:
    line = " ".join(f"{name}={os.environ.get(name, 'not set')}" for name in names)
    print(f"{line}\n", end="")  # in one write: the lines of two ranks do not mix
