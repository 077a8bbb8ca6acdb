"""Which gradients differ between ranks after backward? The chapter *tiny-ddp* runs it under torchrun.

torchrun --standalone --nproc-per-node=3 differing.py
"""

import os

import torch
import torch.distributed as dist


def differing(model):
    """Return the names of parameters whose gradient is not the same on all ranks; none differs from zeros.

    Compares bits, because the smaller one of a number and NaN can be the number. Call it on every rank.
    """
    names = []
    for name, parameter in model.named_parameters():
        mine = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        there = torch.tensor([parameter.grad is not None], dtype=torch.uint8, device=mine.device)
        bits = torch.cat([there, mine.contiguous().reshape(-1).view(torch.uint8)])
        lowest, highest = bits.clone(), bits.clone()
        dist.all_reduce(lowest, dist.ReduceOp.MIN)
        dist.all_reduce(highest, dist.ReduceOp.MAX)
        if not torch.equal(lowest, highest):
            names.append(name)
    return names


local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
model = torch.nn.Linear(2, 1).to(device)
ddp = torch.nn.parallel.DistributedDataParallel(model)
ddp(torch.ones(1, 2, device=device) * dist.get_rank()).sum().backward()
after_ddp = differing(model)
model.weight.grad += dist.get_rank()  # what a forgotten rank, or a hook in ready order, may leave
after_mistake = differing(model)
if dist.get_rank() == 1:
    model.bias.grad.fill_(float("nan"))
after_nan = differing(model)
if dist.get_rank() == 0:
    print("after DDP:", after_ddp, "after a mistake:", after_mistake, "and a NaN:", after_nan)
dist.destroy_process_group()
