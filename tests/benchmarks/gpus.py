"""From nothing to the first NCCL all_reduce of four ranks: ``python -m tests.benchmarks.gpus``, part of ``make bench``.

ranklab and torchrun take turns. Where there are fewer GPUs than ranks, both sides share them, by the same three
variables. Most of the time goes into CUDA's start in each process, which neither side can save, so what is promised is
less than on the CPU: not to be slower than torchrun. Where there is no GPU, one line says that nothing was measured.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ranklab.system.gpus import visible_gpus

PROGRAM = Path(__file__).with_name("gpu_contenders.py")
BEGAN, SHARED = "RANKLAB_BENCH_BEGAN", "BENCH_SHARED"  # as the contenders name them
NAMES = ("ranklab", "torchrun")
RANKS, ROUNDS, LIMIT = 4, 5, 1.0
PATIENCE = 300  # seconds for one start; the first after a boot takes longest


def command(name: str, size: int) -> list[str]:
    """Return the command line of a contender."""
    launch = (
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)] if name == "torchrun" else []
    )
    return [sys.executable, *launch, str(PROGRAM), name, str(size)]


def measure(name: str, size: int, shared: bool) -> float:
    """Run one contender once.

    Returns:
        The seconds until every rank had the sum.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "IPP_NONINTERACTIVE": "1"}
    if shared:
        environment[SHARED] = "1"
    environment[BEGAN] = repr(time.monotonic())
    ran = subprocess.run(
        command(name, size), env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    results = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode or not results:
        raise RuntimeError(f"{name} with {size} ranks on GPUs failed: {(ran.stderr or ran.stdout)[-600:]}")
    return json.loads(results[-1])["first"]


def report(console: Console, out: Path, rounds: int = ROUNDS, size: int = RANKS) -> bool:
    """Measure, show and store; return whether ranklab was no slower, or there was nothing to measure."""
    gpus = visible_gpus()
    if not gpus:
        console.print("NCCL is skipped: this machine shows no NVIDIA GPU.")
        return True
    shared = gpus < size
    seconds: dict[str, list[float]] = {name: [] for name in NAMES}
    for _ in range(rounds):
        for name in NAMES:
            seconds[name].append(measure(name, size, shared))
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    ratio = medians["ranklab"] / medians["torchrun"]
    how = f"sharing {gpus}" if shared else "a GPU each"
    table = Table(title=f"From nothing to the first NCCL all_reduce, {size} ranks, {how}: median seconds (low – high)")
    for name in NAMES:
        table.add_column(name, justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("limit", justify="right")
    shown = [f"{medians[name]:.2f} ({min(found):.2f} – {max(found):.2f})" for name, found in seconds.items()]
    table.add_row(*shown, f"{ratio:.2f}", f"≤ {LIMIT:g}")
    console.print(table)
    out.mkdir(parents=True, exist_ok=True)
    (out / "gpus.json").write_text(json.dumps({"gpus": gpus, "ranks": size, "seconds": seconds}, indent=1) + "\n")
    console.print(f"No slower than torchrun on GPUs: {'kept' if ratio <= LIMIT else '[bold red]broken'}")
    return ratio <= LIMIT


if __name__ == "__main__":
    sys.exit(0 if report(Console(), Path("_build/bench")) else 1)
