"""Print which GPU this process would take; it needs none.

CUDA_VISIBLE_DEVICES=4,5 torchrun --standalone --nproc-per-node=2 cards.py
"""

import os

visible = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
local_rank = int(os.environ["LOCAL_RANK"])
print(f"sees {visible}, LOCAL_RANK {local_rank}: card {visible[local_rank]}")
