"""Do chapters hold on a busy machine? ``python -m tests.benchmarks.steady --burners 8 --rounds 10 [chapter …]``.

Executes each chapter and compares it with its stored outputs, as ``make test`` does, while other programs take the
processors: ``--burners`` processes that compute without end, ``--beside`` another chapter that runs again and again,
``--room`` notebooks that start ranks, hang and recover again and again. Prints for every chapter the runs, the failures
and what failed, and keeps what nbval said of each failed run in ``_build/steady``. ``--together`` runs several chapters
side by side, which is a load of its own.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bookkit.chapters import named

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "_build" / "steady"
NBVAL = ["-p", "bookkit.needs", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider", "-q", "--tb=short"]
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)::(?:ipynb::)?(Cell \d+)?", re.MULTILINE)
REASON = re.compile(r"^(?:E   )?\s*((?:\w+Error|RankTimeout|Cell execution|Timeout)\b[^\n]{0,160})", re.MULTILINE)
# Everything that is started here ends with this program, also where that is killed.
LEASHED = [sys.executable, "-m", "bookkit.leash", "pytest", *NBVAL]
BURNER = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
ROOM = """
import os, sys
sys.path[:0] = {paths!r}
from bookkit.leash import follow_parent
from support import Notebook
follow_parent()
notebook = Notebook()
while True:
    notebook.run("import ranklab\\nworld = ranklab.start(4)")
    for _ in range(3):
        notebook.px("import torch, torch.distributed as dist\\ndist.init_process_group('gloo')", "--timeout 120")
        notebook.px("if dist.get_rank() == 0:\\n    dist.all_reduce(torch.ones(1))", "--timeout 2")
    notebook.run("world.stop()")
"""


@contextmanager
def running(command: list[str]):
    """Keep a program running, started again where it ends, and end it afterwards."""
    over = threading.Event()
    current: list[subprocess.Popen] = []

    def again() -> None:
        while not over.is_set():
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            # A session of its own, as every rank has: Linux shares processors among sessions (sched_autogroup).
            current[:] = [subprocess.Popen(command, env=environment(), start_new_session=True, **quiet)]
            current[0].wait()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        over.set()
        while thread.is_alive():
            for process in current:
                process.kill()  # what it has started ends with it: that is a promise of ranklab
            thread.join(0.2)


def environment() -> dict[str, str]:
    """Return the environment in which ``make test`` runs chapters."""
    paths = [str(ROOT / "src"), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    fixed = {"IPP_NONINTERACTIVE": "1", "PYTHONHASHSEED": "0", "JUPYTER_PREFER_ENV_PATH": "1"}
    return {**os.environ, **fixed, "PYTHONPATH": os.pathsep.join(paths)}


def compare(chapter: str, seconds: int) -> tuple[float, str]:
    """Execute a chapter once; return the seconds it took and what failed, "" where nothing did."""
    began = time.monotonic()
    limits = [f"--nbval-cell-timeout={seconds}", f"--nbval-kernel-startup-timeout={seconds}"]
    ran = subprocess.run(
        [*LEASHED, *limits, chapter], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    took = time.monotonic() - began
    if ran.returncode == 0:
        return took, ""
    cells = [cell or "collection" for _, cell in FAILED.findall(ran.stdout)]
    reason = REASON.search(ran.stdout)
    tail = ran.stdout.strip().splitlines()[-1:] or ["no output"]
    kept = keep(Path(chapter).stem, ran.stdout + ran.stderr)
    return took, f"{cells[0] if cells else 'pytest'}: {reason[1] if reason else tail[0]} ({kept.name})"


def keep(chapter: str, said: str) -> Path:
    """Write down what a failed run said, the outputs that differ included; what fails once in 60 runs is rare."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{chapter}-{time.time_ns()}.log"
    kept.write_text(said, encoding="utf-8")
    return kept


def load(options: argparse.Namespace, stack: ExitStack) -> None:
    """Start what takes the processors."""
    for _ in range(options.burners):
        stack.enter_context(running([sys.executable, "-c", BURNER]))
    for _ in range(options.room):
        program = ROOM.format(paths=[str(ROOT / "tests")])
        stack.enter_context(running([sys.executable, "-c", program]))
    if options.beside:
        beside = str(named(ROOT, [Path(options.beside)])[0])
        stack.enter_context(running([*LEASHED, beside]))


def report(console: Console, runs: dict[str, list[tuple[float, str]]]) -> int:
    """Print the table; return the number of failed runs."""
    table = Table("chapter", "runs", "failed", "seconds", "what failed", title="Chapters on a busy machine")
    failures = 0
    for chapter, results in runs.items():
        failed = [what for _, what in results if what]
        failures += len(failed)
        times = sorted(took for took, _ in results)
        spread = f"{times[0]:.0f}–{times[-1]:.0f}" if times else ""
        table.add_row(Path(chapter).stem, str(len(results)), str(len(failed)), spread, "\n".join(sorted(set(failed))))
    console.print(table)
    return failures


def main() -> int:
    """Run what the command line asks for; return 1 where a run failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("chapters", nargs="*", type=Path, help="all where none is given")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--burners", type=int, default=0, help="processes that compute without end")
    parser.add_argument("--room", type=int, default=0, help="notebooks that start, hang and recover")
    parser.add_argument("--beside", default="", help="a chapter that runs again and again")
    parser.add_argument("--together", type=int, default=1, help="how many chapters run side by side")
    parser.add_argument(
        "--cell-seconds", type=int, default=600, help="limit of a cell and of a kernel that starts, for nbval"
    )
    options = parser.parse_args()
    chapters = [str(path) for path in named(ROOT, options.chapters)]
    console = Console()
    runs: dict[str, list[tuple[float, str]]] = {chapter: [] for chapter in chapters}

    def one(chapter: str) -> None:
        took, what = compare(chapter, options.cell_seconds)
        runs[chapter].append((took, what))
        console.print(f"{Path(chapter).stem}: {took:.0f} s, {what or 'as stored'}", highlight=False)

    with ExitStack() as stack:
        load(options, stack)
        with ThreadPoolExecutor(options.together) as pool:
            list(pool.map(one, chapters * options.rounds))
    return int(bool(report(console, runs)))


if __name__ == "__main__":
    sys.exit(main())
