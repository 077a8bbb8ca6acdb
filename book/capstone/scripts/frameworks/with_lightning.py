"""The run in Lightning.

torchrun --standalone --nproc-per-node=2 with_lightning.py
"""

import lightning
import torch
from shared import BATCH, RANK, RANKS, RATE, begin, loss_of
from torch.utils.data import DataLoader, DistributedSampler

LOGGED = {}  # what `self.log` has left on this rank


class Network(lightning.LightningModule):
    """The model, its loss and its optimizer."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.losses = []

    def training_step(self, batch, number):
        """Return the loss of this rank's rows."""
        inputs, targets = batch
        loss = loss_of(self.model(inputs), targets)
        self.log("loss", loss)
        mean = self.trainer.strategy.reduce(loss.detach().clone())  # in place
        self.losses.append(mean.item())
        return loss

    def configure_optimizers(self):
        """Return the optimizer."""
        return torch.optim.AdamW(self.parameters(), lr=RATE)


def train(model, rows, passes=1, keep_order=True):
    """Train, and return the mean loss of all ranks at each pass."""
    sampler = None
    if keep_order:
        sampler = DistributedSampler(rows, RANKS, RANK, shuffle=False)
    loader = DataLoader(rows, BATCH // RANKS, sampler=sampler)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=RANKS,
        strategy="ddp",
        max_epochs=1,
        accumulate_grad_batches=passes,
        use_distributed_sampler=not keep_order,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    network = Network(model)
    trainer.fit(network, loader)
    LOGGED["loss"] = trainer.callback_metrics["loss"].item()
    return network.losses


if __name__ == "__main__":
    train(*begin())
    print(f"rank {RANK} of {RANKS} is done")
