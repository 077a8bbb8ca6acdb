"""A small GPT over characters: what it computes, and how it speaks. The chapter *mingpt* trains it."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class GPTConfig:
    """The sizes of the network."""

    vocabulary: int  # how many different characters there are
    context: int = 64  # how many characters it sees at once
    width: int = 64  # numbers per character
    layers: int = 2
    heads: int = 4
    dropout: float = 0.0


class Attention(nn.Module):
    """Each character looks at itself and at the characters before it."""

    def __init__(self, config):
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.project = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x):
        """Map (rows, characters, width) to the same shape."""
        rows, length, width = x.shape
        each = width // self.heads
        parts = self.project(x).view(rows, length, 3, self.heads, each)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        options = {"dropout_p": dropout, "is_causal": True}
        seen = F.scaled_dot_product_attention(query, key, value, **options)
        return self.out(seen.transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    """Attention between characters, then a small network for each of them."""

    def __init__(self, config):
        super().__init__()
        width = config.width
        self.before_attention, self.attention = nn.LayerNorm(width), Attention(config)
        self.before_network = nn.LayerNorm(width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        """Map (rows, characters, width) to the same shape."""
        x = x + self.dropout(self.attention(self.before_attention(x)))
        return x + self.dropout(self.network(self.before_network(x)))


class GPT(nn.Module):
    """From characters to a score for each character that may come next."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.characters = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.scores = nn.Linear(config.width, config.vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, tokens):
        """Map numbers of characters (rows, length) to scores (rows, length, vocabulary)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.characters(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))


def loss_of(scores, targets):
    """Return the mean loss of all characters in the batch."""
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


@torch.no_grad()
def speak(model, tokens, length, heat=0.8, seed=0):
    """Append `length` characters to the list `tokens`, one at a time, and return the longer list."""
    model.eval()
    device = next(model.parameters()).device
    dice, tokens = torch.Generator().manual_seed(seed), list(tokens)
    for _ in range(length):
        seen = torch.tensor([tokens[-model.config.context :]], device=device)
        chances = (model(seen)[0, -1] / heat).softmax(0).cpu()
        tokens.append(int(torch.multinomial(chances, 1, generator=dice)))
    return tokens
