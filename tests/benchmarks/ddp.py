"""TinyDDP with buckets beside torch's DDP: ``python -m tests.benchmarks.ddp``, part of ``make bench``.

Four ranks train a tower of 24 layers of 1024, 25.2 million parameters, with torch's DDP as it comes and with the
BucketDDP of the chapter *buckets*, cut at the same caps. They take turns within a round; the slowest rank's time of
forward, backward and step counts. Promised is 0.9 times the throughput of torch's DDP, medians of one run. A third
contender, without any exchange, says what talking costs. On two hosts with 500 Mbit/s between them the same two
compare with buckets of 4 MB, and with one bucket, which hides nothing: shown, not promised.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ranklab

from .worlds import possible

SCRIPTS = Path(__file__).parents[2] / "book" / "data-parallel" / "scripts"
ROUNDS = 9
LIMIT = 0.9
WORLDS = {
    "loopback, 4 ranks": ({"size": 4}, 24, 64, {"torch": "DDP(tower())", "ours": "BucketDDP(tower())"}),
    "2 hosts, 500 Mbit/s": (
        {"nodes": [1, 1], "link": "500mbit"},
        6,
        1024,
        {
            "torch": "DDP(tower(), bucket_cap_mb=4)",
            "ours": "BucketDDP(tower(), caps=(4 * 2**20,))",
            "one bucket": "DDP(tower(), bucket_cap_mb=1000)",
        },
    ),
}
PREPARE = """
import sys, time, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
sys.path.insert(0, {scripts!r})
from tiny_ddp_buckets import BucketDDP
dist.init_process_group()
torch.set_num_threads(1)  # torchrun's rule gives a host's only rank all cores, and these hosts share them
def tower():
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(1024, 1024, bias=False) for _ in range({depth})])
models = {{{models}}}
optimizers = {{name: torch.optim.SGD(model.parameters(), lr=1e-3) for name, model in models.items()}}
rows = torch.randn({rows}, 1024, generator=torch.Generator().manual_seed(dist.get_rank()))
def step(name):
    dist.barrier()
    began = time.perf_counter()
    models[name](rows).square().mean().backward()
    optimizers[name].step()
    optimizers[name].zero_grad()
    return time.perf_counter() - began
for name in models:
    for _ in range(3):
        step(name)
parameters = sum(p.numel() for p in models["torch"].parameters())
"""


def measure(rounds: int = ROUNDS) -> dict[str, dict]:
    """Measure each world.

    Returns:
        For each world the number of parameters and, for each contender, median, low and high seconds of a step and
        its throughput as a share of torch's. Where this machine allows no hosts, loopback alone.
    """
    figures = {}
    for name, (layout, depth, rows, made) in possible(WORLDS).items():
        contenders = ", ".join(f"{who!r}: {how}" for who, how in [*made.items(), ("no exchange", "tower()")])
        code = PREPARE.format(scripts=str(SCRIPTS), depth=depth, rows=rows, models=contenders)
        with ranklab.start(**layout) as world:
            view = world.view(range(world.size))
            view.execute(code, block=True)
            # Who goes first changes from round to round, so that nobody always follows the same one.
            turns = f"[[*models][(k + turn) % len(models)] for turn in range({rounds}) for k in range(len(models))]"
            view.execute(f"took = [(name, step(name)) for name in {turns}]", block=True)
            each, parameters = world.pull("took"), world.pull("parameters")[0]
        slowest: dict[str, list[float]] = {}
        for ranks in zip(*each, strict=True):
            slowest.setdefault(ranks[0][0], []).append(max(seconds for _, seconds in ranks))
        base = statistics.median(slowest["torch"])
        figures[name] = {"parameters": parameters, "rows": {}}
        for who, seconds in slowest.items():
            middle = statistics.median(seconds)
            figures[name]["rows"][who] = {
                "median": middle,
                "low": min(seconds),
                "high": max(seconds),
                "throughput": base / middle,
            }
    return figures


def report(console: Console, out: Path, rounds: int = ROUNDS) -> bool:
    """Measure, show and store; return whether TinyDDP is as fast as promised."""
    figures = measure(rounds)
    table = Table(title="A training step: milliseconds, medians of one run")
    for heading in ("", "parameters", "who", "step (low – high)", "throughput / torch's", "limit"):
        table.add_column(heading, justify="left" if heading in ("", "who") else "right")
    for name, found in figures.items():
        for number, (who, row) in enumerate(found["rows"].items()):
            head = ("", "") if number else (name, f"{found['parameters'] / 1e6:.1f} M")
            spread = f"{row['median'] * 1e3:.0f} ({row['low'] * 1e3:.0f} – {row['high'] * 1e3:.0f})"
            judged = who == "ours" and "link" not in WORLDS[name][0]
            table.add_row(*head, who, spread, f"{row['throughput']:.2f}", f"≥ {LIMIT:g}" if judged else "none")
    console.print(table)
    if len(figures) < len(WORLDS):
        console.print("The link was not measured: this machine allows no hosts.")
    out.mkdir(parents=True, exist_ok=True)
    (out / "ddp.json").write_text(json.dumps(figures, indent=1) + "\n")
    kept = figures["loopback, 4 ranks"]["rows"]["ours"]["throughput"] >= LIMIT
    console.print(f"TinyDDP's throughput: {'kept' if kept else '[bold red]broken'}")
    return kept


if __name__ == "__main__":
    os.environ["IPP_NONINTERACTIVE"] = "1"
    sys.exit(0 if report(Console(), Path("_build/bench")) else 1)
