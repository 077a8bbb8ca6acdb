"""Average the metrics of all ranks with one all_reduce. The chapter *collectives* runs it under torchrun.

torchrun --standalone --nproc-per-node=4 metrics.py
"""

import os

import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
rank = dist.get_rank()


def mean_over_ranks(metrics):
    """Return the mean of each metric over all ranks. Every rank calls it, with the same names in any order."""
    names = sorted(metrics)
    values = torch.tensor([metrics[name] for name in names], dtype=torch.float64, device=device)
    dist.all_reduce(values)
    values /= dist.get_world_size()
    return dict(zip(names, values.tolist(), strict=True))


metrics = {"loss": 1.0, "hits": 10.0 + rank}
if rank == 0:
    metrics = {"hits": 10.0, "loss": 1.0}  # in another order, on purpose
print(f"{mean_over_ranks(metrics)}\n", end="")  # in one write: the lines of two ranks do not mix
dist.destroy_process_group()
