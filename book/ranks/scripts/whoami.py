"""Print who this process is, as torchrun told it; run it with torchrun."""

import os

NAMES = ["RANK", "LOCAL_RANK", "GROUP_RANK"]
NAMES += ["WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE"]
print(*[f"{name}={os.environ[name]}" for name in NAMES])
print("NODE_RANK" in os.environ, "WORLD_RANK" in os.environ)
