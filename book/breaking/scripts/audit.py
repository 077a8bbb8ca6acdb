"""Six small jobs, one right and five silently wrong, with the detectors. The chapter *silently-wrong* runs it.

torchrun --standalone --nproc-per-node=3 audit.py
"""

import torch
import torch.distributed as dist
from detectors import alike, differ, from_all, seen_twice, wrong_loss
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

FAULTS = "right", "all rows everywhere", "an order per rank", "unfrozen late", "a rate per rank", "rank 0's loss"


def squares(model, batch):
    """Sum of the squared errors of a batch, for a goal that a network can learn."""
    return (model(batch) - batch.sum(1, keepdim=True)).square().sum()


def job(fault):
    """Look at one step of a job, and return the names of the detectors that found something."""
    rank, size = dist.get_rank(), dist.get_world_size()
    rows = torch.randn(96, 8, generator=torch.Generator().manual_seed(0))
    seed = rank if fault == "an order per rank" else 0
    order = torch.randperm(96, generator=torch.Generator().manual_seed(seed)).tolist()
    mine = order if fault == "all rows everywhere" else order[rank::size]
    batch = rows[mine]

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    model[0].requires_grad_(fault != "unfrozen late")
    ddp = DDP(model)
    model.requires_grad_(True)
    rate = 0.1 / (rank + 1) if fault == "a rate per rank" else 0.1
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)

    with ddp.no_sync():  # first each rank's own gradient: the ranks have to differ
        squares(ddp, batch).backward()
    own = {name: p.grad.clone() for name, p in model.named_parameters()}
    optimizer.zero_grad()
    total = squares(ddp, batch)  # then the averaged gradient: the ranks have to agree
    (total / len(mine)).backward()
    shared = {name: p.grad for name, p in model.named_parameters()}
    optimizer.step()

    sums = torch.tensor([total.item(), len(mine)], dtype=torch.float64)
    if fault != "rank 0's loss":
        dist.all_reduce(sums)
    logged = (sums[0] / sums[1]).item()
    found = {
        "own gradients alike": alike(own),
        "gradients differ": differ(shared),
        "parameters differ": differ(dict(model.named_parameters())),
        "rows seen twice": seen_twice(mine),
        "wrong loss logged": wrong_loss(logged, total.item(), len(mine)),
    }
    return [name for name, items in found.items() if items]


dist.init_process_group("gloo")
for fault in FAULTS:
    found = from_all(job(fault))[0]
    if dist.get_rank() == 0:
        print(f"{fault}: {', '.join(found) or 'nothing found'}")
dist.destroy_process_group()
