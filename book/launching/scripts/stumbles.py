"""Fail on rank 0 the first time that torchrun starts the ranks.

torchrun --standalone --nproc-per-node=2 --max-restarts=1 stumbles.py
"""

import os

from torch.distributed import TCPStore

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print("start number", attempt, flush=True)
# The table of keys in which torchrun's agent keeps addresses; it outlives the ranks.
store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
store.set(f"rank {os.environ['RANK']} has started {attempt}", "yes")
if attempt == 0 and os.environ["RANK"] == "0":
    store.wait(["rank 1 has started 0"])
    raise ConnectionError("the file server does not answer")
