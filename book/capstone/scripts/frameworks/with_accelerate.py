"""The run in Hugging Face Accelerate.

torchrun --standalone --nproc-per-node=2 with_accelerate.py
"""

import torch
from accelerate import Accelerator
from shared import BATCH, RATE, begin, loss_of
from torch.utils.data import DataLoader


def train(model, rows, passes=1):
    """Train, and return the mean loss of all ranks at each pass."""
    # `passes` of them make a step of the optimizer
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=passes)
    loader = DataLoader(rows, BATCH // accelerator.num_processes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    losses = []
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            loss = loss_of(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(accelerator.reduce(loss.detach(), "mean").item())
    return losses


if __name__ == "__main__":
    train(*begin())
    me = Accelerator()
    print(f"rank {me.process_index} of {me.num_processes} is done")
    me.end_training()
