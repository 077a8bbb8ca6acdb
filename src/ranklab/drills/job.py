"""The job of a drill: started, watched until it stands still, asked what it has to tell, and ended.

Nothing runs any more when the reader begins to look: what the ranks told is kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ..errors import RanklabError
from ..launch.agents import STOP, WARDEN
from ..launch.clock import LaunchClock
from ..launch.ranklogs import Log
from ..layout import IMPATIENT, LOOPBACK
from ..live import Live
from ..rank.drilled import ASKED, OUTSIDE, PROGRAM
from ..rank.recorder import BUFFER, ENTRIES
from ..system import backends
from ..system.deadman import HOME, OWNER
from ..system.leftovers import make_home
from ..system.pipes import piped
from .catalogue import Case
from .fault import ANYWHERE, ENDED, STOPPED
from .scene import Scene

DEADLINE = 120.0  # seconds in which the job could run; a quiet machine needs five
STILL = 10  # looks of a rank at itself, ten a second, that found it where it was
LOOK = 0.1


def play(case: Case) -> list[Scene]:
    """Run the job of a case until it stands still; return what each rank left, in rank order. Nothing runs afterwards.

    Raises:
        RanklabError: the job did not come to where it should; the sentence says so.
    """
    folder = make_home()
    process = None
    live = Live()
    try:
        process = _start(case, folder)
        return _Watch(case, folder, process).wait(live)
    finally:
        if process is not None:
            _end(process)
        shutil.rmtree(folder, ignore_errors=True)
        live.finish()


def _start(case: Case, folder: Path) -> subprocess.Popen:
    """Write what the job reads, and start it under a warden."""
    (folder / PROGRAM).write_text(case.program.text, encoding="utf8")
    (folder / OUTSIDE).write_text(json.dumps(case.outside()))
    for rank in range(case.at.size):
        (folder / f"part-{rank}.json").write_text(json.dumps(case.part(rank)))
    command = [sys.executable, "-m", "ranklab.rank.drilled", str(folder), str(case.at.size)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RANKLAB_", "TORCH_"))}
    environment |= {HOME: str(folder), OWNER: str(os.getpid()), BUFFER: ENTRIES, "OMP_NUM_THREADS": "1"}
    # The ranks import the same ranklab as the notebook, wherever that has found it.
    paths = [str(Path(__file__).parents[2]), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    for name, value in (*backends.interfaces(LOOPBACK).items(), IMPATIENT):
        environment.setdefault(name, value)
    with open(folder / "job.log", "wb") as log:
        return subprocess.Popen(
            [*WARDEN, str(folder), *command],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )


def _end(process: subprocess.Popen) -> None:
    """End the job and all that it has started."""
    with contextlib.suppress(BrokenPipeError):
        piped(process.stdin).close()
    try:
        process.wait(STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class _Watch:
    """Looks at the ranks of a job from outside, through the files that they write.

    Args:
        case: what is wrong, and so where the guilty rank will stand.
        folder: of the job.
        process: its warden.
    """

    def __init__(self, case: Case, folder: Path, process: subprocess.Popen) -> None:
        self._case, self._folder, self._process, self._asked = case, folder, process, 0

    def wait(self, live: Live) -> list[Scene]:
        """Wait until nothing moves any more and the guilty rank is where its fault leads it."""
        clock = LaunchClock([self._process.pid])
        while clock() < DEADLINE:
            if self._process.poll() is not None:
                raise RanklabError(f"The job of drill {self._case.seed} ended before it began: {self._last_words()}")
            if all(self._stands(rank) for rank in range(self._case.at.size)) and (told := self._ask(clock)):
                return told
            if live.due():
                live.show({"text/plain": f"drill {self._case.seed}: the job runs, {live.seconds} s"})
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(LOOK)
        raise RanklabError(
            f"The job of drill {self._case.seed} does not stand still after {DEADLINE:g} s of its own time. "
            "Play it again when the machine has time."
        )

    def _ask(self, clock: LaunchClock) -> list[Scene]:
        """Return what all ranks tell; nothing where they have moved on meanwhile, or are not where they shall be."""
        self._asked += 1
        (self._folder / f"{ASKED}.part").write_text(str(self._asked))
        os.replace(self._folder / f"{ASKED}.part", self._folder / ASKED)
        until, answered = clock() + 10, False
        while clock() < until and not answered and self._process.poll() is None:
            answered = all(self._answered(rank) for rank in range(self._case.at.size))
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(LOOK)
        still = all(self._stands(rank) for rank in range(self._case.at.size))
        told = [self._scene(rank) for rank in range(self._case.at.size)]
        return told if answered and still and self._is_it(told) else []

    def _is_it(self, told: list[Scene]) -> bool:
        """Say whether the guilty rank stands where its fault leads it, and nobody trains on."""
        guilty, stands = told[self._case.at.guilty], self._case.fault.stands
        codes = [each.exit_code for each in told]
        if stands == ENDED:
            there = None not in codes and guilty.exit_code == -self._case.fault.outside
        elif stands == STOPPED:
            there = self._stopped(guilty.rank)
        elif stands == ANYWHERE:
            there = any(codes) or guilty.line in self._case.program.stands
        else:
            there = guilty.line in self._case.program.stands
        if not there and None not in codes:  # nothing will change any more
            words = f"ended without its fault: {guilty.last_line}"
            raise RanklabError(f"The job of drill {self._case.seed} {words}")
        return there

    def _stands(self, rank: int) -> bool:
        """Say whether a rank has ended, is stopped, or has not moved for a while."""
        if self._read(rank, "exit") or self._stopped(rank):
            return True
        return int(self._read(rank, "still") or 0) >= STILL

    def _stopped(self, rank: int) -> bool:
        import psutil

        pid = self._read(rank, "pid")
        try:
            return bool(pid) and psutil.Process(int(pid)).status() == psutil.STATUS_STOPPED
        except psutil.Error:
            return False

    def _answered(self, rank: int) -> bool:
        silent = bool(self._read(rank, "exit")) or self._stopped(rank)
        return silent or self._told(rank).get("asked") == str(self._asked)

    def _told(self, rank: int) -> dict:
        return json.loads(self._read(rank, "told") or "{}")

    def _scene(self, rank: int) -> Scene:
        code = self._read(rank, "exit")
        told = {} if code or self._stopped(rank) else self._told(rank)
        return Scene(rank, Log(self._folder / f"rank-{rank}.log").text(), int(code) if code else None, told)

    def _read(self, rank: int, what: str) -> str:
        try:
            return (self._folder / f"rank-{rank}.{what}").read_text(encoding="utf8")
        except FileNotFoundError:
            return ""

    def _last_words(self) -> str:
        return (Log(self._folder / "job.log").text().strip().splitlines() or ["it said nothing"])[-1]
