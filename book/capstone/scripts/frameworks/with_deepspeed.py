"""The run in DeepSpeed. Not run by the chapter: the first start compiles C++ for minutes.

torchrun --standalone --nproc-per-node=2 with_deepspeed.py
"""

import deepspeed
import torch
import torch.distributed as dist
from shared import BATCH, RANKS, RATE, begin, loss_of
from torch.utils.data import DataLoader, DistributedSampler


def train():
    """Train, and return the mean loss of all ranks at each step."""
    deepspeed.init_distributed(dist_backend="gloo")
    model, rows = begin()
    loader = DataLoader(rows, BATCH // RANKS, sampler=DistributedSampler(rows, shuffle=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    config = {
        "train_micro_batch_size_per_gpu": BATCH // RANKS,
        "zero_optimization": {"stage": 0},
        "zero_allow_untested_optimizer": True,
        "gradient_clipping": 0.0,  # the default is 1.0
    }
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    losses = []
    for inputs, targets in loader:
        loss = loss_of(engine(inputs), targets)
        engine.backward(loss)
        engine.step()
        loss = loss.detach()
        dist.all_reduce(loss)
        losses.append(loss.item() / RANKS)
    return losses


if __name__ == "__main__":
    print(*train())
