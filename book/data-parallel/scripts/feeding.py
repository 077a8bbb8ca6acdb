"""Feed DDP's ranks, resume in the middle of an epoch, test without padding. The chapter *feeding-ranks* runs it.

torchrun --standalone --nproc-per-node=3 feeding.py
"""

import os
from itertools import islice

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

on_gpu, local_rank = torch.cuda.is_available(), int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

points = torch.randn(196, 8, generator=torch.Generator().manual_seed(0))
goal = points.sum(1, keepdim=True)
train_set = TensorDataset(torch.arange(96), points[:96], goal[:96])
sampler = DistributedSampler(train_set)  # it shuffles: no shuffle=True in the loader
workers = {"num_workers": 2, "multiprocessing_context": "forkserver"} if on_gpu else {}
loader = DataLoader(train_set, batch_size=9 // world_size, sampler=sampler, pin_memory=on_gpu, **workers)
