"""Are the loss curves of the chapter *mingpt* one curve? ``python -m tests.benchmarks.curves --seeds 10 --steps 12``.

For each seed the project of ``book/capstone/scripts/mingpt`` trains in one process, and on four ranks with DDP and with
sharded weights. Prints the largest difference to the one process for each seed, and in how many of them every loss is
within the page's tolerance; the exit status is 1 where one is not. The chapter itself adds two computers, for one seed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "book" / "capstone" / "scripts" / "mingpt"
RANKS, TOLERANCE = 4, 1e-4


def curve(main, text: str, seed: int, steps: int, *changes: str) -> list[float]:
    """Train, and return the loss of each step."""
    import torch

    words = f"text={text}", f"seed={seed}", f"steps={steps}", "log=", "snapshot="
    trainer = main.build(main.read_config(*words, *changes), torch.device("cpu"))
    return [loss for _, loss in trainer.train()]


def compare(text: str, seeds: int, steps: int) -> int:
    """Train on this rank of torchrun; rank 0 prints the table, and returns how many seeds differ."""
    import torch
    import torch.distributed as dist

    sys.path.insert(0, str(PROJECT))
    import main

    torch.set_num_threads(1)
    alone = {}
    if os.environ["RANK"] == "0":  # before there is a group; the others wait for it
        alone = {seed: curve(main, text, seed, steps) for seed in range(seeds)}
    dist.init_process_group("gloo")
    apart = {}
    for strategy in "ddp", "sharded":
        for seed in range(seeds):
            losses = curve(main, text, seed, steps, f"strategy={strategy}")
            pairs = zip(alone.get(seed, losses), losses, strict=True)
            apart[strategy, seed] = max(abs(one - other) for one, other in pairs)
    if os.environ["RANK"] == "0":
        print("seed        DDP    sharded")
        for seed in alone:
            print(f"{seed:4} {apart['ddp', seed]:10.7f} {apart['sharded', seed]:10.7f}")
    equal = sum(max(apart["ddp", seed], apart["sharded", seed]) < TOLERANCE for seed in alone)
    if os.environ["RANK"] == "0":
        print(f"{equal} of {seeds} within {TOLERANCE} in all {steps} steps")
    dist.destroy_process_group()
    return len(alone) - equal


def main() -> int:
    """Start the ranks, or be one."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--seeds", type=int, default=10)
    asked.add_argument("--steps", type=int, default=12)
    options = asked.parse_args()
    if "RANK" in os.environ:
        return compare(os.environ["CURVES_TEXT"], options.seeds, options.steps)
    sys.path.insert(0, str(PROJECT))
    from data import book_text

    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "book.txt")
        text.write_text(book_text(ROOT), encoding="utf-8")
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}"]
        command = [*launch, "-m", "tests.benchmarks.curves", f"--seeds={options.seeds}", f"--steps={options.steps}"]
        return subprocess.run(command, cwd=ROOT, env=os.environ | {"CURVES_TEXT": str(text)}).returncode


if __name__ == "__main__":
    sys.exit(main())
