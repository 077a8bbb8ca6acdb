"""Let DDP sum its gradients with a ring of your own. The chapter *all-reduce* runs it under torchrun.

torchrun --standalone --nproc-per-node=4 own_ring.py
"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def ring(tensor):
    """Leave in a tensor of one dimension, whose length the number of ranks divides, the sum over all ranks."""
    chunks = tensor.view(size, -1)
    inbox = torch.empty_like(chunks[0])
    for step in range(2 * (size - 1)):
        out, coming = chunks[(rank - step) % size], chunks[(rank - step - 1) % size]
        sent = dist.P2POp(dist.isend, out, (rank + 1) % size)
        received = dist.P2POp(dist.irecv, inbox, (rank - 1) % size)
        for work in dist.batch_isend_irecv([sent, received]):
            work.wait()
        coming.copy_(coming + inbox if step < size - 1 else inbox)


def hook(state, bucket):
    """Return the mean of a bucket of gradients, summed in the ring."""
    gradients = bucket.buffer()
    flat = torch.nn.functional.pad(gradients / size, (0, -len(gradients) % size))  # divided first: float16 overflows
    ring(flat)
    done = torch.futures.Future(devices=[device] if on_gpu else None)
    done.set_result(flat[: len(gradients)])
    return done


gradients = []
for own in (False, True):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(98, 13).to(device), device_ids=[local_rank] if on_gpu else None)
    if own:
        model.register_comm_hook(None, hook)
    model(torch.full((1, 98), rank + 1.0, device=device)).square().sum().backward()
    gradients.append(model.module.weight.grad)
if rank == 0:
    print("the gradient of all_reduce:", torch.allclose(*gradients), "same bits:", torch.equal(*gradients))
dist.destroy_process_group()
