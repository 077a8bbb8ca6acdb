"""Is anything left of a Slurm on the desk? ``python -m tests.benchmarks.desks [rounds]``.

Starts a Slurm on three hosts, runs a job of two ranks on two of them, and ends it: 30 times by default. After each
round it looks for what was not there before: processes with this round's mark or in its namespaces, network namespaces,
interfaces, mounts, and folders. All columns of the table are zero where nothing is left. Needs Slurm and hosts.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import uuid
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from hosting import holders, machine, marked, program, spaces
from support import eventually

SCRIPTS = Path(__file__).parents[2] / "book" / "launching" / "scripts"
ROUND = """
    import ranklab
    from ranklab.lab.slurm import Slurm
    with ranklab.hosts(3) as lab:
        slurm = Slurm(lab, {scripts!r})
        job = slurm.sbatch("#!/bin/bash\\n#SBATCH --nodes=2\\nexport MASTER_ADDR=computer1 MASTER_PORT=29400\\n"
            "srun -K python anywhere.py\\n").wait()
        print(*job.lines, sep=";", flush=True)
        input()
"""
EXPECTED = ";".join(f"rank {rank} of 2 by srun on computer{rank + 1}: sum 1" for rank in range(2))
PATIENCE = 60  # seconds until what still ends counts as left


def namespaces() -> set[str]:
    """The network namespaces that processes of this machine are in."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.add(os.readlink(f"/proc/{name}/ns/net"))
        except OSError:
            continue
    return found


def one(folder: Path) -> tuple[str, list[int], float]:
    """Run a round; return what went wrong, what is left by kind, and the seconds it took."""
    mark, before, began = uuid.uuid4().hex, machine(), time.monotonic()
    text = ROUND.format(scripts=str(SCRIPTS))
    with program(text, mark, folder, [], stdin=-1) as child:
        said = child.stdout.readline().strip()
        with spaces(marked(mark)) as ours:  # while all of it runs
            child.communicate("\n")
            took = time.monotonic() - began
            wrong = "" if (said, child.returncode) == (EXPECTED, 0) else f"exit status {child.returncode}: {said}"

            def left() -> list[int]:
                of_ours = namespaces() & ours
                changed = [now != then for now, then in zip(machine(), before, strict=True)]
                counts = len(marked(mark)), len(holders(ours)), len(of_ours), *map(int, changed)
                return [*counts, len(list(folder.iterdir()))]

            eventually(lambda: not any(left()), PATIENCE)
            return wrong or ("" if len(ours) >= 3 else "no hosts were seen"), left(), took


def main(rounds: int) -> int:
    """Run the rounds, print the table, and return 1 where something is left or went wrong."""
    kinds = ["processes", "in namespaces", "namespaces", "interfaces", "mounts", "folders"]
    console, table, bad = Console(), Table("round", "seconds", *kinds, title="Left after a Slurm has ended"), 0
    with tempfile.TemporaryDirectory(prefix="desks-") as folder:
        for number in range(1, rounds + 1):
            wrong, left, took = one(Path(folder))
            bad += bool(wrong or any(left))
            table.add_row(str(number), f"{took:.0f}", *map(str, left))
            console.print(f"round {number}: {wrong or left}", highlight=False, markup=False)
    console.print(table)
    console.print(f"{rounds - bad} of {rounds} rounds left nothing")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 30))
