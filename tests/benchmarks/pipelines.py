"""Pipelines beside their formula: ``python -m tests.benchmarks.pipelines``, part of ``make bench``.

Four ranks run the pipeline of the chapter *pipelines* with stages of known length, which sleep: 20 ms forward and 40 ms
backward a micro-batch. Measured is the bubble, the time of a rank outside of its own steps as a part of the time
inside, averaged over ranks, least of a few rounds; predicted is (p − 1)/m. Promised for GPipe and 1F1B is 15 %. torch's
own schedules run the same stages, by their whole time: shown, not promised.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ranklab

SCRIPTS = Path(__file__).parents[2] / "book" / "model-parallel" / "scripts"
ROUNDS = 5
LIMIT = 0.15
MICRO = (4, 8, 16)
SLOT = 0.06  # seconds, forward and backward
PREPARE = """
import sys, time, torch, torch.distributed as dist
from torch import nn
from torch.distributed import pipelining
sys.path.insert(0, {scripts!r})
from pipeline import Pipeline, gpipe, one_f_one_b
dist.init_process_group()
rank = dist.get_rank()
class Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        time.sleep(0.020)
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        time.sleep(0.040)
        return gradient
class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)
    def forward(self, x):
        return Sleep.apply(self.linear(x))
def ours(schedule, micro):
    line = Pipeline(Slow(), [0, 1, 2, 3], 32)
    rows = torch.randn(micro, 32)
    dist.barrier()
    line.step(schedule, rows, rows, micro, nn.functional.mse_loss)
    return line.events, line.peak
def torchs(name, micro):
    stage = pipelining.PipelineStage(Slow(), rank, 4, torch.device("cpu"))
    schedule = getattr(pipelining, name)(stage, micro, loss_fn=nn.functional.mse_loss)
    rows = torch.randn(micro, 32)
    for _ in range(2):  # the first step also exchanges shapes
        dist.barrier()
        began = time.time()
        schedule.step(*[rows][rank:], target=rows if rank == 3 else None)
    return began, time.time()
"""


def bubble(ranks: list) -> float:
    """Return the idle time as a part of the busy time, averaged over ranks, from each rank's steps."""
    steps = [step for rank in ranks for step in rank]
    took = max(end for *_, end in steps) - min(start for *_, start, _ in steps)
    busy = [sum(end - start for *_, start, end in rank) for rank in ranks]
    return sum(took / each - 1 for each in busy) / len(busy)


def measure(rounds: int = ROUNDS) -> list[dict]:
    """Return for each schedule and number of micro-batches the least bubble, what is predicted, and the peaks."""
    figures = []
    with ranklab.start(4) as world:
        view = world.view(range(4))
        view.execute(PREPARE.format(scripts=str(SCRIPTS)), block=True)
        for micro in MICRO:
            pairs = "(gpipe, one_f_one_b)"
            view.execute(f"took = [[ours(s, {micro}) for s in {pairs}] for _ in range({rounds})]", block=True)
            view.execute(f"theirs = [torchs('Schedule' + s, {micro}) for s in ('GPipe', '1F1B')]", block=True)
            took, theirs = world.pull("took"), world.pull("theirs")
            for place, name in enumerate(("GPipe", "1F1B")):
                runs = [[rank[turn][place][0] for rank in took] for turn in range(rounds)]
                whole = max(rank[place][1] for rank in theirs) - min(rank[place][0] for rank in theirs)
                figures.append(
                    {
                        "schedule": name,
                        "micro": micro,
                        "bubble": min(map(bubble, runs)),
                        "predicted": 3 / micro,
                        "peaks": [rank[0][place][1] for rank in took],
                        "torch": whole / (micro * SLOT) - 1,
                    }
                )
    return figures


def report(console: Console, out: Path, rounds: int = ROUNDS) -> bool:
    """Measure, show and store; return whether every bubble is as near to its prediction as promised."""
    figures = measure(rounds)
    table = Table(title="The bubble of four stages of known length")
    for heading in ("schedule", "micro-batches", "of the ideal", "predicted", "off", "of the step", "torch's", "peaks"):
        table.add_column(heading, justify="left" if heading == "schedule" else "right")
    for row in figures:
        part, predicted = row["bubble"], row["predicted"]
        shares = f"{part:.1%}", f"{predicted:.1%}", f"{part / predicted - 1:+.1%}", f"{part / (1 + part):.1%}"
        table.add_row(row["schedule"], str(row["micro"]), *shares, f"{row['torch']:.1%}", str(row["peaks"]))
    console.print(table)
    out.mkdir(parents=True, exist_ok=True)
    (out / "pipelines.json").write_text(json.dumps(figures, indent=1) + "\n")
    kept = all(abs(row["bubble"] / row["predicted"] - 1) <= LIMIT for row in figures)
    console.print(f"Bubbles within {LIMIT:.0%}: {'kept' if kept else '[bold red]broken'}")
    return kept


if __name__ == "__main__":
    os.environ["IPP_NONINTERACTIVE"] = "1"
    sys.exit(0 if report(Console(width=110), Path("_build/bench")) else 1)
