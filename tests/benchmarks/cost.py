"""Whether two numbers predict what an all_reduce takes: ``python -m tests.benchmarks.cost``, part of ``make bench``.

Ranks are timed at sizes up to 4 MB, and t = fixed + slope × size is fitted with equal weight for every relative error,
as the chapter *cost-of-talking* does it (which, being short, takes the shortest turns of loopback). The line then
predicts what it was not fitted to: one all_reduce of 16 MB, and twenty in a row of 0.1, 0.2, … 2 MB. On this machine's
loopback, and with two ranks on each of two hosts and 500 Mbit/s between them. Ranks that have no core each are measured
and not judged.

How it is measured, so that the scheduler is in the fit as much as in what the fit predicts: small calls are timed many
in a row, so that every sample lasts about as long as the targets; sizes and targets take turns in one loop, so that a
busy second hits all of them; medians are fitted, and medians are predicted.
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

SIZES = [4_000, 1_000_000, 2_000_000, 4_000_000]  # none in the knee, where latency and bytes overlap
ROW, MOST = 8_000_000, 20  # as many calls in a row as carry that many bytes, and at most so many
TARGETS = {"16 MB": [16_000_000], "20 tensors, 21 MB": [100_000 * number for number in range(1, 21)]}
ROUNDS = 9
FAST = 5  # times as many rounds on loopback, where a call takes little and the scheduler adds much
WORLDS = {
    "loopback, 2 ranks": ({"size": 2}, 0.35),
    "loopback, 4 ranks": ({"size": 4}, 0.35),
    "2 × 2, 500 Mbit/s": ({"nodes": [2, 2], "link": "500mbit"}, 0.20),
}
PREPARE = """
import time, torch, torch.distributed as dist
dist.init_process_group()
def timed(sizes):
    tensors = [torch.zeros(size // 4) for size in sizes]
    dist.barrier()
    began = time.perf_counter()
    for tensor in tensors:
        dist.all_reduce(tensor)
    return time.perf_counter() - began
timed([4_000_000]), timed([16_000_000])
"""


def fit(sizes: list[int], seconds: list[float]) -> tuple[float, float]:
    """Return the seconds that a call costs and those that a byte costs, by least squares of the relative errors."""
    import numpy

    rows = numpy.array([[1, size] for size in sizes]) / numpy.array(seconds)[:, None]
    fixed, slope = numpy.linalg.lstsq(rows, numpy.ones(len(sizes)), rcond=None)[0]
    return float(fixed), float(slope)


def measure(rounds: int = ROUNDS) -> dict[str, dict]:
    """Measure each world.

    Returns:
        For each world: what was fitted, and for each thing predicted the seconds predicted and measured (median, low,
        high) and the relative error. Where this machine allows no hosts, loopback alone.
    """
    figures = {}
    for name, (layout, _) in possible(WORLDS).items():
        with ranklab.start(**layout) as world:
            figures[name] = _one(world, rounds if "link" in layout else FAST * rounds)
    return figures


def _one(world, rounds: int) -> dict:
    view = world.view(range(world.size))
    view.execute(PREPARE, block=True)
    rows = [[size] * min(MOST, ROW // size) for size in SIZES]
    calls = [*rows, *TARGETS.values()]
    view.execute(f"took = [[timed(sizes) for sizes in {calls}] for _ in range({rounds})]", block=True)
    # The slowest rank's time is the collective's.
    slowest = [[max(ranks) for ranks in zip(*each, strict=True)] for each in zip(*world.pull("took"), strict=True)]
    columns = [sorted(each) for each in zip(*slowest, strict=True)]
    fixed, slope = fit(SIZES, [statistics.median(took) / len(row) for took, row in zip(columns, rows, strict=False)])
    steps, part = 2 * (world.size - 1), 2 * (world.size - 1) / world.size
    found = {"fixed": fixed, "slope": slope, "alpha": fixed / steps, "beta": slope / part, "rows": {}}
    for (name, sizes), took in zip(TARGETS.items(), columns[len(rows) :], strict=True):
        predicted = sum(fixed + slope * size for size in sizes)
        found["rows"][name] = {
            "predicted": predicted,
            "median": statistics.median(took),
            "low": took[0],
            "high": took[-1],
            "error": predicted / statistics.median(took) - 1,
        }
    return found


def report(console: Console, out: Path, rounds: int = ROUNDS) -> bool:
    """Measure, show and store; return whether every prediction is as good as it should be."""
    figures = measure(rounds)
    table = Table(title="all_reduce, fitted up to 4 MB: milliseconds, median (low – high)")
    for heading in (
        "",
        "α, a step",
        "MB/s (1 / β)",
        "what",
        "predicted",
        "measured",
        "error",
        "limit",
    ):
        table.add_column(heading, justify="left" if heading in ("", "what") else "right")
    kept = True
    for name, found in figures.items():
        layout, limit = WORLDS[name]
        crowded = layout.get("size", 0) > os.cpu_count()  # ranks that wait for a core: shown, not promised
        for number, (what, row) in enumerate(found["rows"].items()):
            kept &= crowded or abs(row["error"]) <= limit
            low, middle, high = (f"{row[name] * 1e3:.0f}" for name in ("low", "median", "high"))
            spread = f"{middle} ({low} – {high})"
            head = ("", "", "") if number else (name, f"{found['alpha'] * 1e3:.2f}", f"{1e-6 / found['beta']:.0f}")
            error = f"{row['error']:+.0%}"
            table.add_row(
                *head, what, f"{row['predicted'] * 1e3:.0f}", spread, error, "none" if crowded else f"{limit:.0%}"
            )
    console.print(table)
    if len(figures) < len(WORLDS):
        console.print("The link was not measured: this machine allows no hosts.")
    out.mkdir(parents=True, exist_ok=True)
    (out / "cost.json").write_text(json.dumps(figures, indent=1) + "\n")
    console.print(f"Predictions within their limits: {'kept' if kept else '[bold red]broken'}")
    return kept


if __name__ == "__main__":
    os.environ["IPP_NONINTERACTIVE"] = "1"
    sys.exit(0 if report(Console(), Path("_build/bench")) else 1)
