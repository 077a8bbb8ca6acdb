"""The run in Ray Train. Not run by the chapter: Ray starts a cluster of its own first.

python with_ray.py
"""

import json
import tempfile
from pathlib import Path

import ray
import torch
import torch.distributed as dist
from ray.train import RunConfig, ScalingConfig, get_context
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from torch.utils.data import DataLoader


def work(settings):
    """Train on one worker of Ray's, and let rank 0 write the mean loss of all ranks at each step."""
    from shared import BATCH, RATE, begin, loss_of

    model, rows = begin()
    ranks = get_context().get_world_size()
    loader = prepare_data_loader(DataLoader(rows, BATCH // ranks))
    model = prepare_model(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    losses = []
    for inputs, targets in loader:
        loss = loss_of(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        dist.all_reduce(loss)
        losses.append(loss.item() / ranks)
    if get_context().get_world_rank() == 0:
        Path(settings["losses"]).write_text(json.dumps(losses))


def train(ranks=2):
    """Train, and return the mean loss of all ranks at each step."""
    ray.init(num_cpus=ranks)
    folder = tempfile.mkdtemp()
    settings, workers = {"losses": f"{folder}/losses"}, ScalingConfig(num_workers=ranks)
    TorchTrainer(
        work, train_loop_config=settings, scaling_config=workers, run_config=RunConfig(storage_path=folder)
    ).fit()
    return json.loads(Path(settings["losses"]).read_text())


if __name__ == "__main__":
    print(*train())
