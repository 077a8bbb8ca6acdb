"""The run in the Trainer of Hugging Face transformers.

torchrun --standalone --nproc-per-node=2 with_transformers.py
"""

import torch
import torch.nn.functional as F
from shared import BATCH, RANK, RANKS, RATE, begin
from torch.utils.data import default_collate
from transformers import Trainer, TrainingArguments

ASKED = {
    "train_sampling_strategy": "sequential",
    "lr_scheduler_type": "constant",
    "max_grad_norm": 0,
}


def named(rows):
    """Make a batch: the model gets its tokens, and the loss its labels."""
    inputs, targets = default_collate(rows)
    return {"tokens": inputs, "labels": targets}


def loss_of(scores, labels, num_items_in_batch):
    """Return this rank's part of the loss: the labels of all ranks count."""
    flat = scores.flatten(0, 1)
    total = F.cross_entropy(flat, labels.flatten(), reduction="sum")
    return total / num_items_in_batch


def train(model, rows, passes=1, asked=ASKED, loss=loss_of, folder="output"):
    """Train, and return the mean loss of all ranks at each step."""
    arguments = TrainingArguments(
        folder,
        use_cpu=True,
        per_device_train_batch_size=BATCH // RANKS,
        num_train_epochs=1,
        gradient_accumulation_steps=passes,
        remove_unused_columns=False,
        logging_steps=1,
        disable_tqdm=True,
        **asked,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    trainer = Trainer(
        model,
        arguments,
        named,
        rows,
        compute_loss_func=loss,
        optimizers=(optimizer, None),
    )
    trainer.train()
    log = trainer.state.log_history
    return [entry["loss"] for entry in log if "loss" in entry]


if __name__ == "__main__":
    train(*begin())
    print(f"rank {RANK} of {RANKS} is done")
