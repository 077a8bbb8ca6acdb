"""Fail on rank 0 the first time that torchrun starts the ranks.

torchrun --standalone --nproc-per-node=2 --max-restarts=1 stumbles.py
"""

import os

import torch.distributed as dist

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print("start number", attempt, flush=True)
dist.init_process_group()
dist.barrier()  # rank 0 fails once every rank has started
if attempt == 0 and os.environ["RANK"] == "0":
    raise ConnectionError("the file server does not answer")
dist.destroy_process_group()
