"""The text of this book, as rows of characters, and each rank's share of them. The chapter *mingpt* trains on it."""

import json
from itertools import count
from pathlib import Path

import torch
import yaml
from torch.utils.data import Dataset, Sampler


def book_text(folder):
    """Return the Markdown of the book's chapters, in the order of `_toc.yml`, which stands in `folder`."""
    folder, texts = Path(folder), []
    for part in yaml.safe_load((folder / "_toc.yml").read_text())["parts"]:
        for chapter in part["chapters"]:
            path = folder / f"{chapter['file']}.ipynb"
            if path.exists():
                cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
                texts += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return "\n\n".join(texts)


class Characters(Dataset):
    """A text in rows of `context` characters; the target of each character is the one after it.

    Attributes:
        vocabulary: all characters of the text, in order, as one string.
    """

    def __init__(self, text, context):
        self.vocabulary, self.context = "".join(sorted(set(text))), context
        self.number = {character: number for number, character in enumerate(self.vocabulary)}
        self.tokens = torch.tensor(self.encode(text))

    def encode(self, text):
        """Return the number of each character."""
        return [self.number[character] for character in text]

    def decode(self, tokens):
        """Return the text of a list of numbers."""
        return "".join(self.vocabulary[token] for token in tokens)

    def __len__(self):
        return (len(self.tokens) - 1) // self.context

    def __getitem__(self, row):
        first = row * self.context
        return self.tokens[first : first + self.context], self.tokens[first + 1 : first + self.context + 1]


class Shares(Sampler):
    """This rank's rows of each step, without an end: the number of the step chooses the rows of all ranks.

    Set `begin` to the number of steps that are done, and the sampler goes on with the next one. All ranks together
    take `batch` rows in a step, so another number of ranks changes who takes a row, and not when it is taken.
    """

    def __init__(self, rows, batch, rank=0, world_size=1, seed=0):
        if batch % world_size:
            raise ValueError(f"{batch} rows do not divide among {world_size} ranks.")
        if rows < batch:
            raise ValueError(f"The text has {rows} rows, and one step takes {batch}.")
        self.rows, self.batch, self.seed, self.begin = rows, batch, seed, 0
        self.rank, self.world_size = rank, world_size

    def __iter__(self):
        in_epoch, shuffled = self.rows // self.batch, None
        for step in count(self.begin):
            epoch, place = divmod(step, in_epoch)
            if epoch != shuffled:
                draw = torch.Generator().manual_seed(self.seed + epoch)
                order, shuffled = torch.randperm(self.rows, generator=draw), epoch
            of_all = order[place * self.batch : (place + 1) * self.batch]
            yield of_all[self.rank :: self.world_size].tolist()
