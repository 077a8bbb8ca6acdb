"""Measure ranklab against torchrun, mp.spawn and stock ipyparallel: ``make bench``, or ``--quick`` for a smoke test.

Contenders take turns within a round, so that a busy machine is busy for all of them; reported are medians over the
rounds with their spread, and ratios within the run. Nothing is measured in absolute terms anywhere else.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from ranklab.layout import LOOPBACK

from . import cost, ddp, gpus, link, pipelines

HERE = Path(__file__).parent
BEGAN = "RANKLAB_BENCH_BEGAN"
NAMES = {"fork": "ranklab", "spawn": "ranklab, spawn", "torchrun": "torchrun", "mp": "mp.spawn", "stock": "ipyparallel"}
LIMIT = 300


def command(name: str, size: int) -> list[str]:
    """Return the command line of a contender."""
    program = str(HERE / "contenders.py")
    if name == "torchrun":
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
        return [sys.executable, *launch, program, name, str(size)]
    return [sys.executable, program, name, str(size)]


def measure(name: str, size: int) -> dict:
    """Run one contender once.

    Returns:
        Its figures; ``total`` is the seconds until everything had ended.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    with tempfile.TemporaryDirectory() as profile:
        environment = {**os.environ, "BENCH_PROFILE": profile, "OMP_NUM_THREADS": "1", "IPP_NONINTERACTIVE": "1"}
        environment.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)  # a machine's name may not resolve
        began = time.monotonic()
        environment[BEGAN] = repr(began)
        ran = subprocess.run(
            command(name, size), env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
        )
        total = time.monotonic() - began
    results = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode or not results:
        raise RuntimeError(f"{NAMES[name]} with {size} ranks failed: {(ran.stderr or ran.stdout)[-600:]}")
    return json.loads(results[-1]) | {"total": total}


def median(runs: list[dict], key: str) -> float:
    """Return the median of one figure over the rounds."""
    return statistics.median(run[key] for run in runs)


def summary(results: dict[tuple[str, int], list[dict]]) -> dict:
    """Return medians, spread and ratios, ready for JSON."""
    figures = {}
    for (name, size), runs in results.items():
        entry = figures.setdefault(str(size), {}).setdefault(name, {})
        for key in ("first", "total", "stop", "replaced", "cell", "panel"):
            if key in runs[0]:
                values = sorted(run[key] for run in runs)
                entry[key] = {"median": statistics.median(values), "low": values[0], "high": values[-1]}
        if "weights" in runs[0]:
            weights = [weight for run in runs for weight in run["weights"]]
            entry["unique_mb"] = statistics.median(unique for unique, _ in weights)
            entry["shared_mb"] = statistics.median(shared for _, shared in weights)
    return figures


def promises(figures: dict) -> list[tuple[str, float, float]]:
    """Return what is promised, what was measured and the limit."""
    rows = []

    def ratio(label, size, key, other, limit):
        ours, theirs = figures.get(size, {}).get("fork"), figures.get(size, {}).get(other)
        if ours and theirs:
            value, base = ours[key], theirs[key]
            value, base = (entry["median"] if isinstance(entry, dict) else entry for entry in (value, base))
            rows.append((label, value / base, limit))

    ratio("first all_reduce, 4 ranks / torchrun", "4", "first", "torchrun", 0.45)
    ratio("first all_reduce, 4 ranks / ipyparallel", "4", "first", "stock", 0.4)
    ratio("first all_reduce, 8 ranks / torchrun", "8", "first", "torchrun", 0.3)
    ratio("unique memory of a rank / ipyparallel", "4", "unique_mb", "stock", 0.4)
    ratio("empty cell / ipyparallel", "4", "panel", "stock", 1.2)
    if "fork" in figures.get("4", {}):
        ours = figures["4"]["fork"]
        rows.append(("one of 4 ranks replaced, s", ours["replaced"]["median"], 1.0))
        rows.append(("stop 4 ranks, s", ours["stop"]["median"], 1.0))
    return rows


def show(figures: dict, console: Console) -> None:
    """Print the tables."""
    table = Table(title="From nothing to the first all_reduce: median seconds (low – high)")
    table.add_column("ranks", justify="right")
    for name in NAMES.values():
        table.add_column(name, justify="right")
    for size, entries in figures.items():
        cells = []
        for name in NAMES:
            first = entries.get(name, {}).get("first")
            cells.append(f"{first['median']:.2f} ({first['low']:.2f} – {first['high']:.2f})" if first else "")
        table.add_row(size, *cells)
    console.print(table)
    table = Table(title="What else is measured")
    for heading in ("ranks", "", "own MB", "shared MB", "empty cell ms", "%%px ms", "replace s", "stop s"):
        table.add_column(heading, justify="left" if not heading else "right")
    for size, entries in figures.items():
        for name, entry in entries.items():
            if "unique_mb" in entry:
                cells = [f"{entry['unique_mb']:.0f}", f"{entry['shared_mb']:.0f}"]
                for key, scale in (("cell", 1000), ("panel", 1000), ("replaced", 1), ("stop", 1)):
                    cells.append(f"{entry[key]['median'] * scale:.2f}" if key in entry else "")
                table.add_row(size, NAMES[name], *cells)
    console.print(table)
    table = Table(title="Promises")
    for heading in ("what", "measured", "limit", ""):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for label, value, limit in promises(figures):
        table.add_row(label, f"{value:.2f}", f"≤ {limit:g}", "kept" if value <= limit else "[bold red]broken")
    console.print(table)


def draw(figures: dict, path: Path) -> None:
    """Draw the time to the first all_reduce."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from ranklab.palette import INK, RANK_COLORS

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    width = 0.8 / len(NAMES)
    for place, (name, label) in enumerate(NAMES.items()):
        entries = [(index, sizes[name]["first"]) for index, sizes in enumerate(figures.values()) if name in sizes]
        at = [index + (place - (len(NAMES) - 1) / 2) * width for index, _ in entries]
        heights = [first["median"] for _, first in entries]
        spread = [
            [first["median"] - first["low"] for _, first in entries],
            [first["high"] - first["median"] for _, first in entries],
        ]
        axes.bar(at, heights, width * 0.9, yerr=spread, label=label, color=RANK_COLORS[place], ecolor=INK)
    axes.set_xticks(range(len(figures)), [f"{size} ranks" for size in figures])
    axes.set_ylabel("seconds to the first all_reduce")
    axes.legend(frameon=False, ncols=3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> int:
    """Measure, show and store; the exit status is 1 where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round with two ranks, to see that everything runs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--only", nargs="+", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--out", type=Path, default=Path("_build/bench"))
    options = parser.parse_args()
    rounds, sizes = (1, [2]) if options.quick else (options.rounds, options.sizes)
    console = Console()
    results: dict[tuple[str, int], list[dict]] = {}
    turns = [(name, size) for _ in range(rounds) for size in sizes for name in options.only]
    for name, size in track(turns, description="measuring", console=console, transient=True):
        results.setdefault((name, size), []).append(measure(name, size))
    figures = summary({key: results[key] for key in sorted(results, key=lambda key: key[1])})
    show(figures, console)
    options.out.mkdir(parents=True, exist_ok=True)
    about = {"rounds": rounds, "cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    stored = {"about": about, "figures": figures, "promises": promises(figures)}
    (options.out / "start.json").write_text(json.dumps(stored, indent=1) + "\n")
    draw(figures, options.out / "start.png")
    console.print(f"Figures are in {options.out / 'start.json'} and {options.out / 'start.png'}.")
    link_kept = link.report(console, options.out, rounds=2 if options.quick else link.ROUNDS)
    quick = {"rounds": 2, "launches": 1} if options.quick else {}
    cost_kept = cost.report(console, options.out, **quick)
    ddp_kept = ddp.report(console, options.out, rounds=2 if options.quick else ddp.ROUNDS)
    pipelines_kept = pipelines.report(console, options.out, rounds=2 if options.quick else pipelines.ROUNDS)
    gpus_kept = gpus.report(console, options.out, rounds=1 if options.quick else gpus.ROUNDS)
    kept = link_kept and cost_kept and ddp_kept and pipelines_kept and gpus_kept
    kept = kept and all(value <= limit for _, value, limit in promises(figures))
    return 0 if options.quick or kept else 1


if __name__ == "__main__":
    sys.exit(main())
