"""A rank that is dead, while the others wait for it. The chapter *hangs* runs it.

torchrun --standalone --nproc-per-node=3 dead.py
"""

import os
import signal

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)  # as the system does when memory is short
dist.all_reduce(torch.ones(4))
print("the sum has come")
