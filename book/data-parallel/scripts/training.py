"""Train a ConvNet on handwritten digits: alone, on ranks or nodes, on CPUs or GPUs. The chapter *training-script*.

python training.py
torchrun --standalone --nproc-per-node=2 training.py
"""

import argparse
import json
import os
import signal
import sys
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ASKED = []  # the handler of SIGTERM notes here that this rank was asked to leave
OPTIONS = {"epochs": 2, "batch": 48, "accumulate": 1, "rate": 0.02, "warmup": 10, "dropout": 0.25, "goal": 1.0}
OPTIONS |= {"workers": 0, "seed": 0, "compile": "", "folder": os.environ.get("TRAINING_FOLDER", ".")}


class ConvNet(nn.Module):
    """Two convolutions and two linear layers."""

    def __init__(self, dropout):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.dropout = nn.Dropout(dropout)
        self.fc1, self.fc2 = nn.Linear(64 * 12 * 12, 128), nn.Linear(128, 10)

    def forward(self, images):
        """Return ten logits a row."""
        maps = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(images)))), 2)
        return self.fc2(F.relu(self.fc1(self.dropout(maps.flatten(1)))))


def read_digits():
    """Return 1440 rows to train on, and images and labels of 350 that are held out."""
    pixels, labels = load_digits(return_X_y=True)
    small = torch.tensor(pixels, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    images = F.interpolate(small, (28, 28), mode="bilinear")
    labels = torch.tensor(labels)
    return TensorDataset(images[:1440], labels[:1440]), (images[-350:], labels[-350:])


def say(text, **where):
    """Print on rank 0 alone."""
    if dist.get_rank() == 0:
        print(text, flush=True, **where)


def add_up(device, *numbers):
    """Return the sums of the numbers over all ranks, the same on each."""
    sums = torch.tensor(numbers, dtype=torch.float64, device=device)
    dist.all_reduce(sums)
    return sums.tolist()


def build(o, device):
    """Return model and optimizer: equal weights on all ranks, other dropout on each."""
    torch.manual_seed(o.seed)  # equal: the first weights
    model = ConvNet(o.dropout).to(device)
    ddp = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    torch.manual_seed(o.seed + 1 + dist.get_rank())  # different: dropout
    rate = o.rate * o.batch / 16  # o.rate is meant for 16 rows
    return ddp, torch.optim.SGD(ddp.parameters(), lr=rate, momentum=0.9)


def make_loader(train_set, o):
    """Return this rank's loader: o.batch rows a step, whatever the number of ranks."""
    rows, left = divmod(o.batch, dist.get_world_size() * o.accumulate)
    if left:
        raise SystemExit(f"{o.batch} rows do not divide: {left} are left.")
    kept = {"worker_init_fn": ignore_term, "pin_memory": torch.cuda.is_available(), "drop_last": True}
    sampler = DistributedSampler(train_set, seed=o.seed, drop_last=True)
    return DataLoader(train_set, rows, sampler=sampler, num_workers=o.workers, **kept)


def ignore_term(worker):
    """Let a loader process ignore SIGTERM, which torchrun sends to a rank's children too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def train_step(ddp, optimizer, batches, device):
    """Make one optimizer step; return the sum of this rank's losses, and its rows."""
    total = rows = 0
    optimizer.zero_grad()
    for part, (images, labels) in enumerate(batches, 1):
        with nullcontext() if part == len(batches) else ddp.no_sync():
            loss = F.cross_entropy(ddp(images.to(device)), labels.to(device))
            (loss / len(batches)).backward()
        total, rows = total + loss.item() * len(labels), rows + len(labels)
    nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
    optimizer.step()
    return total, rows


@torch.no_grad()
def evaluate(model, images, labels, device):
    """Return the accuracy over all held-out rows, each counted once."""
    right = 0
    mine = torch.arange(dist.get_rank(), len(labels), dist.get_world_size())
    model.eval()
    for rows in mine.split(50):
        guesses = model(images[rows].to(device)).argmax(1).cpu()
        right += (guesses == labels[rows]).sum().item()
    model.train()
    right, rows = add_up(device, right, len(mine))
    return right / rows


def train_epoch(ddp, optimizer, rise, loader, o, device, losses):
    """Append the loss of each step to losses; return whether a rank was asked to leave."""
    batches, steps = iter(loader), len(loader) // o.accumulate
    for step in range(1, steps + 1):
        total, rows = train_step(ddp, optimizer, list(islice(batches, o.accumulate)), device)
        rise.step()
        total, rows, leave = add_up(device, total, rows, len(ASKED))
        losses.append(total / rows)
        if sys.stderr.isatty():  # a bar for people; a log file gets none
            say(f"\r{'#' * (20 * step // steps):20} {step}/{steps}", end="", file=sys.stderr)
        if leave:
            return True
    return False


def train(o, device):
    """Train until the epochs are over, the goal is reached, or a rank is asked to leave; return the curve."""
    (train_set, held_out), (ddp, optimizer), losses, accuracy = read_digits(), build(o, device), [], 0
    if o.compile:
        ddp.compile(backend=o.compile)
    rise = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / o.warmup))
    loader = make_loader(train_set, o)
    for epoch in range(o.epochs):
        loader.sampler.set_epoch(epoch)
        leave = train_epoch(ddp, optimizer, rise, loader, o, device, losses)
        if dist.get_rank() == 0:
            state = {"model": ddp.module.state_dict(), "optimizer": optimizer.state_dict(), "steps": len(losses)}
            torch.save(state, f"{o.folder}/snapshot.new")
            os.replace(f"{o.folder}/snapshot.new", f"{o.folder}/snapshot.pt")
        if leave:
            say(f"asked to leave: saved after step {len(losses)}")
            break
        accuracy = evaluate(ddp.module, *held_out, device)
        say(f"epoch {epoch}: loss {losses[-1]:.2f}, accuracy {accuracy:.0%}")
        if accuracy >= o.goal:
            break
    return {"loss": losses, "accuracy": accuracy}


@record
def main():
    """Meet, train, and leave the curve in log.json."""
    parser = argparse.ArgumentParser()
    for name, default in OPTIONS.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    o = parser.parse_args()
    on_gpu, local_rank = torch.cuda.is_available(), int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    alone = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group(dist.get_default_backend_for_device(device), **alone)
    rank, size = dist.get_rank(), dist.get_world_size()
    print(f"GLOBAL_RANK: {rank}, LOCAL_RANK: {local_rank}, MEMBER: {rank + 1}/{size}\n", end="", flush=True)
    signal.signal(signal.SIGTERM, lambda number, frame: ASKED.append(number))
    log = train(o, device)
    if rank == 0:
        Path(o.folder, "log.json").write_text(json.dumps(log))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
