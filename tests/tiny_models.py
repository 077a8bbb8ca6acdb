"""What the tests of TinyDDP share: models with traps, a training, and the launch of a program on ranks.

The programs import it too: :func:`launched` puts it and the chapter's scripts on their path.
"""

import contextlib
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

PART = Path(__file__).parents[1] / "book" / "data-parallel"
SCRIPTS = PART / "scripts"


class Branch(nn.Module):
    """Which layers take part depends on the rank: both, one, or the other; the last one never does."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        chosen = [[0, 1], [1], [0]][dist.get_rank()] if self.training else [0]
        return sum(self.layers[number](x) for number in chosen)


class Early(Branch):
    """The last layer takes part in every other forward pass, on rank 0: never in the pass that ends an exchange."""

    turn = 0

    def forward(self, x):
        self.turn += self.training
        extra = self.layers[2](x) if self.training and self.turn % 2 and dist.get_rank() == 0 else 0
        return super().forward(x) + extra


class Cast(nn.Module):
    def forward(self, x):
        return x.double()


def plain():
    return nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 17), nn.Tanh(), nn.Linear(17, 6))


def tied():
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
    model[2].weight = model[0].weight
    return model


def frozen():
    model = plain()
    model[0].weight.requires_grad_(False)
    return model


def normed():
    return nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 6))


def two_types():
    return nn.Sequential(nn.Linear(6, 9), nn.Linear(9, 9), Cast(), nn.Linear(9, 9).double(), nn.Linear(9, 4).double())


# For each case a function that makes the model, the dtype, and how many backwards go into one exchange.
CASES = {
    "plain": (plain, torch.float32, 1),
    "float64": (plain, torch.float64, 1),
    "bfloat16": (plain, torch.bfloat16, 1),
    "float16": (plain, torch.float16, 1),
    "two types": (two_types, torch.float32, 1),
    "tied": (tied, torch.float32, 1),
    "frozen": (frozen, torch.float32, 1),
    "accumulated": (plain, torch.float32, 3),
    "buffers": (normed, torch.float32, 1),
    "buffers, accumulated": (normed, torch.float32, 2),
    "unused": (Branch, torch.float32, 1),
    "unused, accumulated": (Branch, torch.float32, 2),
    "used before the last pass": (Early, torch.float32, 2),
}


def made(make, dtype):
    """Make a model whose weights differ from rank to rank."""
    torch.manual_seed(dist.get_rank())
    model = make()
    return model if dtype == torch.float32 else model.to(dtype)


def train(model, dtype, micro, to_none=True):
    """Return all gradients and buffers after each of five steps, on rows that differ from rank to rank."""
    torch.manual_seed(10 + dist.get_rank())
    kept = []
    for step in range(5):
        if step != 3:  # once, gradients of two steps add up
            model.zero_grad(set_to_none=to_none)
        for number in range(micro):
            with model.no_sync() if number < micro - 1 else contextlib.nullcontext():
                model(torch.randn(5, 6, dtype=dtype)).square().mean().backward()
        if step == 1:  # an evaluation between two steps
            with torch.no_grad():
                model.eval()(torch.randn(5, 6, dtype=dtype))
                model.train()
        kept += [None if p.grad is None else p.grad.clone() for p in model.parameters()]
        kept += [buffer.clone() for buffer in model.buffers()]
    return kept


def raised(act):
    """Return what an act raised as a RuntimeError."""
    try:
        act()
    except RuntimeError as error:
        return str(error)
    return "nothing raised"


def tell(told):
    """Leave what a rank found for :func:`launched`."""
    Path(f"told-{dist.get_rank()}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


def launched(folder, program, ranks, seconds):
    """Run a program under torchrun and return what each rank told."""
    import ranklab  # here, for ranks import this file too

    (folder / "compare.py").write_text(program)
    path = os.pathsep.join([str(SCRIPTS), str(Path(__file__).parent)])
    with contextlib.chdir(folder):
        run = ranklab.torchrun(
            "compare.py", nproc_per_node=ranks, timeout=seconds, env={"PYTHONPATH": path}, show=False
        )
    assert run.failure is None, run.errors
    return [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(ranks)]


def shown(chapter):
    """Return what the ranks run in each ``%%px`` cell of a chapter of this part."""
    cells = json.loads((PART / f"{chapter}.ipynb").read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [source.partition("\n")[2] for source in sources if source.startswith("%%px")]
