"""The model and the data of `training.py`: a ConvNet, and scikit-learn's handwritten digits at 28 × 28."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import TensorDataset


class ConvNet(nn.Module):
    """Two convolutions and two linear layers."""

    def __init__(self, dropout=0.0):
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
    folder = Path(find_spec("sklearn").origin).parent / "datasets/data"  # not imported: that takes a second
    table = np.loadtxt(folder / "digits.csv.gz", np.float32, delimiter=",")
    pixels, labels = torch.tensor(table).split([64, 1], dim=1)
    small = pixels.reshape(-1, 1, 8, 8) / 16
    images = F.interpolate(small, (28, 28), mode="bilinear")
    labels = labels.flatten().long()
    train_set = TensorDataset(images[:1440], labels[:1440])
    return train_set, (images[-350:], labels[-350:])
