"""What all programs of this folder train with: the model, the rows, the numbers. The chapter *frameworks* runs them."""

import os
import sys
from pathlib import Path

import torch
from torch.utils.data import Dataset

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "mingpt"))

from data import Characters  # noqa: E402 - found through the line above
from model import GPT, GPTConfig, loss_of  # noqa: E402, F401

STEPS, BATCH, RATE = 12, 32, 1e-3  # BATCH is the number of rows of all ranks together
RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


class Rows(Dataset):
    """The first rows of a data set. It notes which of them were read, in the list `read`."""

    def __init__(self, data, length):
        self.data, self.length, self.read = data, length, []

    def __len__(self):
        return self.length

    def __getitem__(self, row):
        self.read.append(int(row))
        return self.data[row]


def begin(steps=STEPS):
    """Return the model with its first weights, and the rows of all steps, in the order in which they are to be read."""
    # A text that changes only with torch: another sign in it would change the model, and with it every loss
    text = Path(torch.nn.functional.__file__).read_text(encoding="ascii", errors="ignore")
    data = Characters(text, context=64)
    torch.manual_seed(0)
    return GPT(GPTConfig(len(data.vocabulary))), Rows(data, steps * BATCH)
