"""Train a model on any number of ranks, save what a resume needs, and go on from it. Used by main.py."""

import json
import os
import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
from model import loss_of
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)  # the same file for every strategy


class Trainer:
    """A model, its optimizer, its data, and the number of steps done.

    Args:
        config: the keys of config.yaml, as attributes.
        model: the bare model, with equal weights on all ranks.
        data: a Dataset of (input, target).
        sampler: yields this rank's rows of each step from its `begin` on; see `data.Shares`.
        device: where this rank computes.
    """

    def __init__(self, config, model, data, sampler, device):
        self.config, self.device, self.done, self.began = config, device, 0, 0.0
        self.rank, self.world_size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        self.data, self.sampler, self.model = data, sampler, self.distribute(model.to(device))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.rate)  # after the sharding
        self.scaler = torch.amp.GradScaler(device.type, enabled=config.precision == "float16")
        self.load()

    def distribute(self, model):
        """Return the model as the strategy wants it; one process takes it as it is."""
        if self.world_size == 1:
            return model
        if self.config.strategy == "sharded":
            for block in model.blocks:
                fully_shard(block)
            return fully_shard(model)
        return DDP(model, device_ids=[self.device.index] if self.device.type == "cuda" else None)

    def train(self):
        """Do the steps that are left; a generator of (number of the step, loss of all ranks)."""
        self.sampler.begin, self.began = self.done, time.monotonic()
        batches = iter(DataLoader(self.data, batch_sampler=self.sampler, pin_memory=self.device.type == "cuda"))
        while self.done < self.config.steps:
            loss = self.step(*next(batches))
            self.done += 1
            self.note(loss)
            if self.done % self.config.every == 0 or self.done == self.config.steps:
                self.save()
            yield self.done, loss

    def step(self, inputs, targets):
        """Do one optimizer step; return the mean loss over all ranks."""
        inputs, targets = inputs.to(self.device), targets.to(self.device)
        turn = (self.done + 1) * self.world_size + self.rank
        torch.manual_seed(self.config.seed + turn)  # for dropout: another one in each step, on each rank
        warm = min(1, (self.done + 1) / self.config.warmup)
        self.optimizer.param_groups[0]["lr"] = self.config.rate * warm
        with self.autocast():
            loss = loss_of(self.model(inputs), targets)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)  # clip true gradients, not scaled ones
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        loss = loss.detach()
        if self.world_size > 1:
            dist.all_reduce(loss)
        return loss.item() / self.world_size

    def autocast(self):
        """Return the context of the forward pass."""
        if self.config.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, getattr(torch, self.config.precision))

    def note(self, loss):
        """Append the step to the log: on rank 0 of the whole job, not of each node."""
        if self.rank == 0 and self.config.log:
            line = {"step": self.done, "loss": loss, "seconds": round(time.monotonic() - self.began, 3)}
            with open(self.config.log, "a") as log:
                log.write(json.dumps(line) + "\n")

    def save(self):
        """Write a snapshot: all ranks gather, rank 0 writes; the file of this name is always complete."""
        if not (path := self.config.snapshot):
            return
        model, moments = get_state_dict(self.model, self.optimizer, options=WHOLE)
        if self.rank == 0:
            state = {"model": model, "optimizer": moments, "done": self.done}
            state["scaler"] = self.scaler.state_dict()
            torch.save(state, f"{path}.partial")
            os.replace(f"{path}.partial", path)

    def read(self):
        """Return rank 0's snapshot on all ranks; None if it has none."""
        path, found = self.config.snapshot, [None]
        if self.rank == 0 and path and os.path.exists(path):
            found = [torch.load(path, map_location="cpu")]
        if self.world_size > 1:  # the other ranks need no file
            dist.broadcast_object_list(found, src=0)
        return found[0]

    def load(self):
        """Go on from the snapshot, if there is one."""
        if state := self.read():
            parts = {"model_state_dict": state["model"], "optim_state_dict": state["optimizer"]}
            set_state_dict(self.model, self.optimizer, **parts, options=WHOLE)
            self.scaler.load_state_dict(state["scaler"] or self.scaler.state_dict())  # empty without float16
            self.done = state["done"]
