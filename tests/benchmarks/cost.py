"""Whether two numbers predict what an all_reduce takes: ``python -m tests.benchmarks.cost``, part of ``make bench``.

Ranks are timed at sizes up to 4 MB, and t = fixed + slope × size is fitted with equal weight for every relative error,
as the chapter *cost-of-talking* does it (which, being short, takes the fastest turns). The line then predicts what it
was not fitted to: one all_reduce of 16 MB, and twenty in a row of 0.1, 0.2, … 2 MB. On this machine's
loopback, and with two ranks on each of two hosts and 500 Mbit/s between them. Measured and not judged are ranks that
have no core each, and 16 MB on loopback: there a byte costs more in a message that is longer than the fitted ones, as
the chapter says of its own loopback line. A cable carries every byte at one rate, so there both are judged.

How it is measured, so that the scheduler is in the fit as much as in what the fit predicts: small calls are timed many
in a row, so that every sample lasts about as long as the targets; sizes and targets take turns in one loop, so that a
busy second hits all of them; medians are fitted, and medians are predicted. On loopback several launches are measured,
each with a line of its own, and the median of their errors is judged: how long a waiting process takes to wake (there
most of what a small call costs) differs by a factor of two and more from launch to launch.
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
LAUNCHES, FAST = 7, 5  # on loopback, where little is carried and much is waiting: launches, and times as many rounds
WORLDS = {  # how far off each target may be; None: shown, not judged
    "loopback, 2 ranks": ({"size": 2}, [None, 0.35]),
    "loopback, 4 ranks": ({"size": 4}, [None, 0.35]),
    "2 × 2, 500 Mbit/s": ({"nodes": [2, 2], "link": "500mbit"}, [0.20, 0.20]),
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


def measure(rounds: int = ROUNDS, launches: int = LAUNCHES) -> dict[str, list[dict]]:
    """Measure each world.

    Returns:
        For each world, for each of its launches: what was fitted, and for each thing predicted the seconds predicted
        and measured (a median) and the relative error. Where this machine allows no hosts, loopback alone.
    """
    figures = {}
    for name, (layout, _) in possible(WORLDS).items():
        across = "link" in layout
        figures[name] = []
        for _launch in range(1 if across else launches):
            with ranklab.start(**layout) as world:
                figures[name].append(_one(world, rounds if across else FAST * rounds))
    return figures


def _one(world, rounds: int) -> dict:
    view = world.view(range(world.size))
    view.execute(PREPARE, block=True)
    rows = [[size] * min(MOST, ROW // size) for size in SIZES]
    calls = [*rows, *TARGETS.values()]
    view.execute(f"took = [[timed(sizes) for sizes in {calls}] for _ in range({rounds})]", block=True)
    # The slowest rank's time is the collective's.
    slowest = [[max(ranks) for ranks in zip(*each, strict=True)] for each in zip(*world.pull("took"), strict=True)]
    medians = [statistics.median(took) for took in zip(*slowest, strict=True)]
    fixed, slope = fit(SIZES, [took / len(row) for took, row in zip(medians, rows, strict=False)])
    steps, part = 2 * (world.size - 1), 2 * (world.size - 1) / world.size
    found = {"alpha": fixed / steps, "beta": slope / part, "rows": {}}
    for (name, sizes), measured in zip(TARGETS.items(), medians[len(rows) :], strict=True):
        predicted = sum(fixed + slope * size for size in sizes)
        found["rows"][name] = {"predicted": predicted, "measured": measured, "error": predicted / measured - 1}
    return found


def spread(values: list[float], style: str) -> str:
    """Write the median of the launches, and below it the least and the most of them where there are several."""
    low, middle, high = (format(each, style) for each in (min(values), statistics.median(values), max(values)))
    return middle if len(values) == 1 else f"{middle}\n({low} … {high})"


def report(console: Console, out: Path, rounds: int = ROUNDS, launches: int = LAUNCHES) -> bool:
    """Measure, show and store; return whether every prediction is as good as it should be."""
    figures = measure(rounds, launches)
    table = Table(title="all_reduce, fitted up to 4 MB: milliseconds of median launches (least … most)")
    for heading in ("", "α, a step", "MB/s (1 / β)", "what", "predicted", "measured", "error", "limit"):
        table.add_column(heading, justify="left" if heading in ("", "what") else "right")
    kept = True
    for name, found in figures.items():
        layout, limits = WORLDS[name]
        crowded = layout.get("size", 0) > os.cpu_count()  # ranks that wait for a core: shown, not promised
        line = [name, spread([1e3 * each["alpha"] for each in found], ".2f")]
        line.append(spread([1e-6 / each["beta"] for each in found], ".0f"))
        for what, most in zip(TARGETS, limits, strict=True):
            limit = None if crowded else most
            rows = [each["rows"][what] for each in found]
            predicted, measured = ([1e3 * row[key] for row in rows] for key in ("predicted", "measured"))
            errors = [row["error"] for row in rows]
            kept &= limit is None or abs(statistics.median(errors)) <= limit
            seconds = spread(predicted, ".0f"), spread(measured, ".0f")
            table.add_row(*line, what, *seconds, spread(errors, "+.0%"), f"{limit:.0%}" if limit else "none")
            line = ["", "", ""]
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
