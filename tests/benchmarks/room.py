"""A room of learners on one machine: many notebooks start ranks, hang and recover at once.

``python -m tests.benchmarks.room [notebooks]``: every notebook is a process with an IPython shell and four ranks. All
of them take each step together: start; set a variable and make a process group; hang, because rank 3 leaves out an
all_reduce; ask every rank for its variable, make a group again and add up; hand in a right answer. The table says how
many ranks kept their variables, how many worlds met again, how many right answers were accepted, and what it took.
Exit status 1 where anything was lost.

It needs nothing of ranklab but what readers call, so another version is measured with its ``src`` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

RANKS = 4
DEADLINE = 5
STEPS = ("start", "prepare", "hang", "recover", "answer")
PREPARE = """%%px --timeout 120
import os, torch
import torch.distributed as dist
rank = int(os.environ["RANK"])
kept = 10 + rank
dist.init_process_group()"""
HANG = f"""%%px --timeout {DEADLINE}
if rank != 3:
    dist.all_reduce(torch.ones(4))"""
TOGETHER = """%%px --timeout 120
import os, torch
import torch.distributed as dist
if not dist.is_initialized():
    dist.init_process_group()
total = torch.ones(1)
dist.all_reduce(total)
total = int(total)"""
ANSWER = """
def total(value):
    import torch
    import torch.distributed as dist

    result = torch.tensor(value)
    dist.all_reduce(result)
    return result.item() if dist.get_rank() == 0 else None

ranklab.check.sum_on_rank_zero(total)"""


class Notebook:
    """One learner's notebook, inside its process.

    Attributes:
        told: what the steps found out, for the table.
    """

    def __init__(self) -> None:
        from IPython.core.interactiveshell import InteractiveShell

        self.shell = InteractiveShell.instance()
        self.told: dict[str, Any] = {}

    def run(self, cell: str) -> str:
        """Run a cell; return what it showed, and its error."""
        from IPython.utils.capture import capture_output

        with capture_output() as captured:
            result = self.shell.run_cell(cell)
        shown = [captured.stdout, *(output.data.get("text/plain", "") for output in captured.outputs)]
        error = result.error_in_exec or result.error_before_exec
        return "\n".join([*filter(None, shown), *([f"{type(error).__name__}: {error}"] if error else [])])

    def start(self) -> None:
        """Start four ranks."""
        self.told["started"] = self.run(f"import ranklab\nworld = ranklab.start({RANKS})")
        self.world = self.shell.user_ns.get("world")

    def prepare(self) -> None:
        """Set what a hang must not lose."""
        self.told["prepared"] = self.run(PREPARE)
        self.told["mb"] = _megabytes()

    def hang(self) -> None:
        """Let three ranks wait for ever; how long the notebook waits beyond the deadline is what recovery takes."""
        began = time.monotonic()
        self.told["report"] = self.run(HANG)
        self.told["recovery"] = time.monotonic() - began - DEADLINE

    def recover(self) -> None:
        """Ask for the variables, and compute together again."""
        asked = self.run("""%%px --timeout 120\nkept = globals().get("kept")""")
        kept = self._pull("kept")
        self.told["kept"] = sum(kept[rank : rank + 1] == [10 + rank] for rank in range(RANKS))
        together = self.run(TOGETHER)
        self.told["together"] = self._pull("total") == [RANKS] * RANKS
        self.told["again"] = f"{asked}\n{together}"

    def answer(self) -> None:
        """Hand in the right answer of an exercise."""
        self.told["verdict"] = self.run(ANSWER).strip()
        self.told["accepted"] = self.told["verdict"].startswith("Correct")

    def _pull(self, name: str) -> list:
        try:
            return self.world.pull(name)
        except Exception as error:
            self.told["pull"] = f"{type(error).__name__}: {error}"
            return []


def _megabytes() -> float:
    """Return the memory of this process and all that it has started, shared pages counted once a share."""
    import psutil

    here = psutil.Process()
    return sum(entry.memory_full_info().pss for entry in [here, *here.children(recursive=True)]) / 2**20


def notebook() -> None:
    """Take the steps that are named on standard input; write after each how long it took."""
    learner = Notebook()
    for line in sys.stdin:
        began = time.monotonic()
        try:
            getattr(learner, line.strip())()
        except Exception as error:  # the table has to be printed all the same
            learner.told.setdefault("failed", f"{line.strip()}: {type(error).__name__}: {error}")
        learner.told[f"seconds_{line.strip()}"] = time.monotonic() - began
        print(json.dumps(learner.told), flush=True)
    if getattr(learner, "world", None) is not None:
        learner.world.stop()


def room(notebooks: int) -> list[dict]:
    """Let so many notebooks take the steps together; return what each of them tells.

    Args:
        notebooks: how many.
    """
    environment = {**os.environ, "IPP_NONINTERACTIVE": "1"}
    command = [sys.executable, "-m", "tests.benchmarks.room", "--notebook"]
    learners = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(notebooks)
    ]
    told: list[dict] = [{} for _ in learners]
    try:
        for step in STEPS:
            print(f"{time.strftime('%H:%M:%S')} {step}, load {os.getloadavg()[0]:.0f} …", file=sys.stderr, flush=True)
            for learner in learners:
                learner.stdin.write(f"{step}\n")
                learner.stdin.flush()
            for number, learner in enumerate(learners):
                line = learner.stdout.readline()
                told[number] = json.loads(line) if line else told[number]
    finally:
        for learner in learners:
            learner.stdin.close()
        for learner in learners:
            learner.wait(120)
    return told


def _span(told: list[dict], name: str, digits: int = 1) -> str:
    figures = sorted(each[name] for each in told if name in each)
    if not figures:
        return "—"
    low, middle, high = figures[0], statistics.median(figures), figures[-1]
    return f"{middle:.{digits}f}  ({low:.{digits}f} … {high:.{digits}f})"


def report(told: list[dict]) -> bool:
    """Print the table; return whether nothing was lost.

    Args:
        told: of each notebook.
    """
    ranks = RANKS * len(told)
    kept = sum(each.get("kept", 0) for each in told)
    together = sum(each.get("together", False) for each in told)
    accepted = sum(each.get("accepted", False) for each in told)
    rows = [
        ("notebooks, four ranks each", str(len(told))),
        ("processors of this machine", str(os.cpu_count())),
        ("ranks that kept their variables", f"{kept} of {ranks}"),
        ("worlds that met again", f"{together} of {len(told)}"),
        ("right answers accepted", f"{accepted} of {len(told)}"),
        ("seconds of a start", _span(told, "seconds_start")),
        ("seconds from deadline to report", _span(told, "recovery")),
        ("seconds of the right answer", _span(told, "seconds_answer")),
        ("MB a notebook, all processes", _span(told, "mb", 0)),
    ]
    for name, figure in rows:
        print(f"{name:<34}{figure}")
    whole = kept == ranks and together == accepted == len(told)
    if not whole:
        for number, each in enumerate(told):
            if not (each.get("kept") == RANKS and each.get("together") and each.get("accepted")):
                print(f"\nnotebook {number}:")
                for name, value in each.items():
                    print(f"  {name}: {value}")
    return whole


def main() -> int:
    """Run the room, or one of its notebooks."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.room", description=__doc__.split("\n\n")[0])
    parser.add_argument("notebooks", nargs="?", type=int, default=12, help="how many at once (default: 12)")
    parser.add_argument("--notebook", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.notebook:
        notebook()
        return 0
    return 0 if report(room(options.notebooks)) else 1


if __name__ == "__main__":
    sys.exit(main())
