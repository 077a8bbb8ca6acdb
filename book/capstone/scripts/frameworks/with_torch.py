"""The run in plain torch, with DDP.

torchrun --standalone --nproc-per-node=2 with_torch.py
"""

import torch
import torch.distributed as dist
from shared import BATCH, RATE, begin, loss_of
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def train(model, rows):
    """Train, and return the mean loss of all ranks at each step."""
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    sampler = DistributedSampler(rows, shuffle=False)
    loader = DataLoader(rows, BATCH // dist.get_world_size(), sampler=sampler)
    model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    losses = []
    for inputs, targets in loader:
        loss = loss_of(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach() / dist.get_world_size()
        dist.all_reduce(loss)
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    train(*begin())
    print(f"rank {dist.get_rank()} of {dist.get_world_size()} is done")
    dist.destroy_process_group()
