"""Train on any number of ranks: `python training.py`, or `torchrun --standalone --nproc-per-node=2 training.py`."""

import argparse
import os
import signal
import sys
from contextlib import nullcontext
from itertools import islice

import torch
import torch.distributed as dist
import torch.nn.functional as F
from digits import ConvNet, read_digits  # your model, your data
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

ASKED = []  # the handler of SIGTERM notes here that this rank was asked to leave
OPTIONS = {"epochs": 2, "batch": 48, "accumulate": 1, "rate": 0.02, "warmup": 10, "dropout": 0.25, "goal": 1.0}
OPTIONS |= {"workers": 0, "seed": 0, "compile": "", "snapshot": os.environ.get("SNAPSHOT", "training.pt")}


def say(text, **where):  # on rank 0 alone
    if dist.get_rank() == 0:
        print(text, flush=True, **where)


def add_up(device, *numbers):  # the sums over all ranks, the same on each
    sums = torch.tensor(numbers, dtype=torch.float64, device=device)
    dist.all_reduce(sums)
    return sums.tolist()


def build(o, device):  # equal weights on all ranks, other dropout on each
    torch.manual_seed(o.seed)  # equal: the first weights
    model = ConvNet(o.dropout).to(device)
    ddp = DDP(model, device_ids=[device.index] if device.type == "cuda" else None)
    torch.manual_seed(o.seed + 1 + dist.get_rank())  # different: dropout
    rate = o.rate * o.batch / 16  # o.rate is meant for 16 rows
    return ddp, torch.optim.SGD(ddp.parameters(), lr=rate, momentum=0.9)


def make_loader(train_set, o):  # this rank's share: o.batch rows a step, whatever the number of ranks
    rows, left = divmod(o.batch, dist.get_world_size() * o.accumulate)
    if left:
        raise SystemExit(f"{o.batch} rows do not divide: {left} are left.")
    kept = {"worker_init_fn": ignore_term, "pin_memory": torch.cuda.is_available(), "drop_last": True}
    sampler = DistributedSampler(train_set, seed=o.seed, drop_last=True)
    return DataLoader(train_set, rows, sampler=sampler, num_workers=o.workers, **kept)


def ignore_term(worker):  # torchrun sends SIGTERM to a rank's loader processes too
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def train_step(ddp, optimizer, batches, device):  # one optimizer step; the sum of this rank's losses, and its rows
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
def evaluate(model, images, labels, device):  # the accuracy over all held-out rows, each counted once
    mine = torch.arange(dist.get_rank(), len(labels), dist.get_world_size())
    model.eval()
    guesses = [model(images[rows].to(device)).argmax(1).cpu() for rows in mine.split(50)]
    model.train()
    right = (torch.cat(guesses) == labels[mine]).sum().item()
    right, rows = add_up(device, right, len(mine))
    return right / rows


def train_epoch(ddp, optimizer, loader, o, device, losses):  # appends to losses; True: a rank was asked to leave
    steps, done = len(loader) // o.accumulate, len(losses) % (len(loader) // o.accumulate)
    batches = islice(loader, done * o.accumulate, None)  # a resumed epoch goes on behind what is done
    for step in range(done + 1, steps + 1):
        optimizer.param_groups[0]["lr"] = optimizer.defaults["lr"] * min(1, (len(losses) + 1) / o.warmup)
        total, rows = train_step(ddp, optimizer, list(islice(batches, o.accumulate)), device)
        total, rows, leave = add_up(device, total, rows, len(ASKED))
        losses.append(total / rows)
        if sys.stderr.isatty():  # a bar for people; a log file gets none
            say(f"\r{'#' * (20 * step // steps):20} {step}/{steps}", end="", file=sys.stderr)
        if leave:
            return True
    return False


def load(path):  # rank 0's snapshot on every rank, None if there is none
    here = dist.get_rank() == 0 and os.path.exists(path)
    found = [torch.load(path, map_location="cpu") if here else None]
    dist.broadcast_object_list(found, src=0)
    return found[0]


def train(o, device):  # until the epochs are over, the goal is reached, or a rank is asked to leave
    (train_set, held_out), (ddp, optimizer) = read_digits(), build(o, device)
    loader, log = make_loader(train_set, o), {"loss": [], "accuracy": 0.0}
    if o.compile:
        ddp.compile(backend=o.compile)
    if found := load(o.snapshot):
        ddp.module.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
        log = found["log"]
        say("snapshot loaded")
    for epoch in range(len(log["loss"]) // (len(loader) // o.accumulate), o.epochs if log["accuracy"] < o.goal else 0):
        loader.sampler.set_epoch(epoch)
        leave = train_epoch(ddp, optimizer, loader, o, device, log["loss"])
        if len(log["loss"]) % (len(loader) // o.accumulate) == 0:  # the epoch is over
            log["accuracy"] = float(evaluate(ddp.module, *held_out, device))  # NumPy's own numbers would not load
            say(f"epoch {epoch}: loss {log['loss'][-1]:.2f}, accuracy {log['accuracy']:.0%}")
        if dist.get_rank() == 0 and o.snapshot:
            state = {"model": ddp.module.state_dict(), "optimizer": optimizer.state_dict(), "log": log}
            torch.save(state, f"{o.snapshot}.new")
            os.replace(f"{o.snapshot}.new", o.snapshot)
        if leave:
            say(f"asked to leave: saved after step {len(log['loss'])}")
        if leave or log["accuracy"] >= o.goal:
            break
    return log


@record
def main():  # meet, train, leave
    parser = argparse.ArgumentParser()
    for name, default in OPTIONS.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    o = parser.parse_args()
    local_rank, ranks = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    device = torch.device("cuda", local_rank) if torch.cuda.device_count() >= ranks else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    alone = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group(dist.get_default_backend_for_device(device), **alone)
    rank, size = dist.get_rank(), dist.get_world_size()
    print(f"GLOBAL_RANK: {rank}, LOCAL_RANK: {local_rank}, MEMBER: {rank + 1}/{size}\n", end="", flush=True)
    signal.signal(signal.SIGTERM, lambda number, frame: ASKED.append(number))
    train(o, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
