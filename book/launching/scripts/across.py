"""Every rank says where it is, and one all_reduce across all computers proves that they talk.

On each of two computers, with the same address and port and its own node rank:

    torchrun --nnodes=2 --node-rank=0 --nproc-per-node=2 --master-addr=… --master-port=29500 across.py
"""

import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist

# Half an hour is torch's own patience; a first try across a network should say sooner that nobody came.
dist.init_process_group("gloo", timeout=timedelta(seconds=60))
rank, local_rank = dist.get_rank(), os.environ["LOCAL_RANK"]
total = torch.tensor([rank])
dist.all_reduce(total)
where = f"rank {rank} of {dist.get_world_size()}, local rank {local_rank}"
# The end of the line goes with it: ranks that share an output would mix their lines otherwise.
print(
    f"{where} on {socket.gethostname()}: all ranks add up to {int(total)}\n", end=""
)
dist.destroy_process_group()
