"""The network of the chapter *sharded*: equal blocks with one matrix each, and one batch for it."""

import torch
from torch import nn


class Block(nn.Module):
    """One matrix and a tanh, added to the input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return as many columns as came in."""
        return x + torch.tanh(self.linear(x))


def network(blocks: int = 4, width: int = 256) -> nn.Sequential:
    """Return blocks whose weights are the same wherever they are made."""
    torch.manual_seed(0)
    return nn.Sequential(*[Block(width) for _ in range(blocks)])


def batch(rows: int = 16, width: int = 256) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows and their goals, the same in every process."""
    draw = torch.Generator().manual_seed(1)
    return torch.randn(rows, width, generator=draw), torch.randn(rows, width, generator=draw)
