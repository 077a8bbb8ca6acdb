"""Train and test on files of unequal lengths, with no row cut or repeated. The chapter *uneven-inputs* runs it.

torchrun --standalone --nproc-per-node=4 uneven.py
"""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def in_step(batches, nothing):
    """Yield this rank's batches, then ``nothing``, until no rank has a batch; with each, the targets of all ranks."""
    own = iter(batches)
    while True:
        batch = next(own, None)
        inputs, targets = nothing if batch is None else batch
        sums = torch.tensor([batch is not None, len(targets)])  # on the CPU: gloo adds them, and no GPU is waited for
        dist.all_reduce(sums)
        ranks, count = sums.tolist()
        if ranks == 0:
            return
        yield inputs, targets, max(count, 1)


def evaluate(model, batches):
    """Return the loss and the accuracy over the rows of all ranks; ``model`` makes no calls, so pass ``ddp.module``."""
    device = next(model.parameters()).device
    sums = torch.zeros(3, dtype=torch.float64, device=device)  # losses, right ones, rows
    model.eval()
    with torch.no_grad():
        for inputs, targets in batches:
            logits = model(inputs)
            sums[0] += F.cross_entropy(logits, targets, reduction="sum")
            sums[1] += (logits.argmax(1) == targets).sum()
            sums[2] += len(targets)
    model.train()
    dist.all_reduce(sums)
    losses, right, rows = sums.tolist()
    return losses / rows, right / rows


launched, local_rank = "RANK" in os.environ, int(os.environ.get("LOCAL_RANK", 0))
on_gpu = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
alone = {} if launched else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", **alone)
rank, world_size = dist.get_rank(), dist.get_world_size()

points = torch.randn(300, 8, generator=torch.Generator().manual_seed(0)).to(device)
labels = points[:, :3].argmax(1)
files = torch.arange(300, device=device).split([150, 90, 53, 7])
mine = [batch for file in files[rank::world_size] for batch in file.split(10)]
batches = [(points[batch], labels[batch]) for batch in mine]
nothing = points[:0], labels[:0]

torch.manual_seed(0)
ddp = DDP(torch.nn.Linear(8, 3).to(device), device_ids=[local_rank] if on_gpu else None)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.5, momentum=0.9)
steps = rows = 0
for inputs, targets, count in in_step(batches, nothing):
    # DDP divides by the number of ranks, so multiply by it: the mean over the targets of all ranks is left.
    loss = F.cross_entropy(ddp(inputs), targets, reduction="sum") / count * world_size
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps, rows = steps + 1, rows + count

_, accuracy = evaluate(ddp.module, batches)
if rank == 0:
    torch.save(ddp.module.state_dict(), os.environ.get("WEIGHTS", "weights.pt"))
    print(f"{steps} steps, {rows} rows; more than 80 % of {len(points)} correct: {accuracy > 0.8}")
dist.destroy_process_group()
