"""Small jobs, one right and twelve silently wrong, and which detector finds what. The chapter *silently-wrong* runs it.

torchrun --standalone --nproc-per-node=3 audit.py
"""

import torch
import torch.distributed as dist
from detectors import alike, differ, from_all, seen_twice, wrong_loss
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

FAULTS = (
    "right", "one tensor in a list", "rank 0's loss", "all rows everywhere", "an order per rank", "a test set per rank",
    "labels from a set", "a sum in a copy", "unfrozen late", "past the wrapper", "a rate per rank",
    "a loss changed in place", "weights not loaded",
)  # fmt: skip
DETECTORS = "differ", "alike", "seen_twice", "wrong_loss"


def order(length, own):
    """Numbers in random order: in one of this rank's own, or in the one of all ranks."""
    return torch.randperm(length, generator=torch.Generator().manual_seed(dist.get_rank() if own else 0))


def network():
    """The same network on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))


def mean_of_ranks(sums, fault):
    """The loss of the job, from each rank's sum of losses and number of rows."""
    if fault == "one tensor in a list":
        parts = [torch.zeros_like(sums)] * dist.get_world_size()
        dist.all_gather(parts, sums)
        sums = sum(parts)
    elif fault != "rank 0's loss":
        dist.all_reduce(sums)
    return (sums[0] / sums[1]).item()


def job(fault):
    """Look at one step of a job, and return the names of the detectors that found something."""
    rank, size = dist.get_rank(), dist.get_world_size()
    rows = torch.randn(96, 8, generator=torch.Generator().manual_seed(0))
    train = order(96, fault == "an order per rank").tolist()
    mine = train if fault == "all rows everywhere" else train[rank::size]
    test = order(1000, fault == "a test set per rank")[800:]
    numbers = order(8, fault == "labels from a set")
    batch, labels = rows[mine], numbers[rows[mine].argmax(1)].unsqueeze(1)

    model = network()
    if fault == "weights not loaded":
        saved = {name: weight + 1 for name, weight in DDP(network()).state_dict().items()}
        model.load_state_dict(saved, strict=False)
    model[0].requires_grad_(fault != "unfrozen late")
    ddp = DDP(model)
    model.requires_grad_(True)
    forward = model if fault in ("past the wrapper", "a sum in a copy") else ddp
    rate = 0.01 / (rank + 1) if fault == "a rate per rank" else 0.01
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)

    with ddp.no_sync():  # first each rank's own gradient: the ranks have to differ
        (forward(batch) - labels).square().sum().backward()
    own = {name: p.grad.clone() for name, p in model.named_parameters()}
    optimizer.zero_grad()
    total = (forward(batch) - labels).square().sum()  # then the averaged gradient: the ranks have to agree
    loss = (total / len(mine)).sqrt()
    if fault == "a loss changed in place":
        dist.all_reduce(loss.detach())
    loss.backward()
    if fault == "a sum in a copy":
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad.double())
    optimizer.step()

    shared = {f"gradient of {name}": p.grad for name, p in model.named_parameters()}
    shared |= {**dict(model.named_parameters()), "class numbers": numbers, "test rows": test}
    logged = mean_of_ranks(torch.tensor([total.item(), len(mine)], dtype=torch.float64), fault)
    found = differ(shared), alike(own), seen_twice(mine), wrong_loss(logged, total.item(), len(mine))
    return [name for name, items in zip(DETECTORS, found, strict=True) if items]


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    print(f"{'fault':23}", *DETECTORS)
for fault in FAULTS:
    found = from_all(job(fault))[0]
    if dist.get_rank() == 0:
        marks = [("x" if name in found else "-").center(len(name)) for name in DETECTORS]
        print(f"{fault:23}", *marks)
dist.destroy_process_group()
