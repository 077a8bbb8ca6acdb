"""Print which GPU this process would take; it needs none.

CUDA_VISIBLE_DEVICES=4,5 torchrun --standalone --nproc-per-node=2 cards.py
"""

import os

visible = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
local_rank = int(os.environ["LOCAL_RANK"])
place = f"LOCAL_RANK {local_rank} of {os.environ['LOCAL_WORLD_SIZE']}"
print(f"sees {visible}, {place}: card {visible[local_rank]}\n", end="")
