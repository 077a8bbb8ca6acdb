"""Does every wrong resume leave the run that never stopped? ``python -m tests.benchmarks.resume [stops]``.

Four ranks run the job of the chapter *checkpoints*, from the chapter's own cells, and stop it at as many random steps,
20 by default. From each stop they resume with everything, and with each of the chapter's seven mistakes. The table says
in how many of the runs all weights and losses of all ranks are equal to the last bit: all for the first, none for the
others. What a kill leaves of a file is measured by ``python book/data-parallel/scripts/killed.py 50``.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import nbformat
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from support import Notebook

CHAPTER = Path(__file__).parents[2] / "book" / "data-parallel" / "checkpoints.ipynb"
MEET = """
%%px
import os
dist.init_process_group("gloo")
rank, groups = dist.get_rank(), {4: dist.new_group([0, 1, 2, 3])}
def warmed(rank, ranks, group):
    job = Job(rank, ranks, group)
    job.ddp(torch.zeros(2, 64)).sum().backward()
    return job
never = train(warmed(rank, 4, groups[4]), 48, stops)
found = []
"""
RESUME = """
%%px --timeout 600
for stop in stops:
    state, runs = never.saved[stop], {}
    for lost in "nothing", "optimizer", "scheduler", "epoch", "batch", "generators":
        runs[f"{lost} lost"] = train(resume(warmed(rank, 4, groups[4]), state, lost), 48)
    box = [state["generators"]]
    dist.broadcast_object_list(box, src=0)
    runs["rank 0's generators"] = train(resume(warmed(rank, 4, groups[4]), state | {"generators": box[0]}), 48)
    job = Job(rank, 4)
    if rank == 0:
        resume(job, state)
    job.ddp, job.step = DDP(job.model, process_group=groups[4]), stop
    runs["only rank 0 loads"] = train(job, 48)
    found.append({name: equal(run, never) for name, run in runs.items()})
"""


def definitions() -> list[str]:
    """The cells of the chapter that define the job: the one with the data, and those for ranks and notebook alike."""
    cells = nbformat.read(CHAPTER, 4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    return [source for source in sources if source.startswith("%%px --local") or "load_digits" in source]


def main(count: int) -> int:
    """Run it, print the table, and return 1 where a row is not as the chapter says."""
    notebook = Notebook()
    notebook.names["stops"] = stops = sorted(random.sample(range(17, 45), count))
    for cell in [
        'import ranklab\nworld = ranklab.start(4, backend="gloo")\nworld.push(stops=stops)',
        *definitions(),
        MEET,
        RESUME,
    ]:
        shown = notebook.run(cell.strip())
        if shown.error:
            raise shown.error
    found = notebook.run("found = world.pull('found')") and notebook.names["found"]
    notebook.run("world.stop()")
    table, wrong = Table("resume", "equal on all ranks", title=f"{count} stops, after steps {stops}"), 0
    for name in found[0][0]:
        right = sum(all(of_rank[at][name] for of_rank in found) for at in range(count))
        wrong += right != (count if name == "nothing lost" else 0)
        table.add_row(name, f"{right} of {count}")
    Console().print(table)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
