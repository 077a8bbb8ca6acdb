"""A job of the Slurm on the reader's desk: what Slurm knows of it, what it has printed, its end."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Protocol

from ..errors import RanklabError

PATIENCE = 300.0  # seconds; the daemons need two, and a machine may be busy
LOOK = 0.05
OVER = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"}


class Desk(Protocol):
    """The Slurm that a job was given to, see :class:`ranklab.lab.slurm.Slurm`."""

    folder: Path

    def run(self, command: str) -> str:
        """Run a command where jobs are submitted; return what it printed."""
        ...


def _place(entry: dict[str, str]) -> str:
    reason = entry.get("Reason", "None")
    return entry["JobState"] if reason == "None" else f"{entry['JobState']} ({reason})"


class Job:
    """A job that was submitted.

    Attributes:
        number: Slurm's number of it.
        said: what ``sbatch`` printed.
    """

    def __init__(self, slurm: Desk, said: str) -> None:
        found = re.search(r"Submitted batch job (\d+)", said)
        if not found:
            raise RanklabError(f"sbatch took no job: {said}")
        self.number, self.said, self._slurm = int(found[1]), said, slurm

    def ask(self) -> list[dict[str, str]]:
        """Return what Slurm knows of the job, ``{"JobState": "RUNNING", …}``; an array has an entry for each task."""
        told = self._slurm.run(f"scontrol --oneliner show job {self.number}")
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in told.splitlines() if line]

    @property
    def state(self) -> str:
        """Slurm's word for where the job is: ``PENDING``, ``RUNNING``, ``COMPLETED``, ``FAILED`` …"""
        states = {entry["JobState"] for entry in self.ask()}
        return next(iter(states)) if len(states) == 1 else ", ".join(sorted(states))

    def wait(self, timeout: float = PATIENCE, state: str = "", text: str = "") -> Job:
        """Wait until the job is over.

        Args:
            timeout: seconds; the job is cancelled then.
            state: wait for this state instead, ``"RUNNING"``.
            text: wait until it has printed this instead.

        Raises:
            RanklabError: it is not over in time, or over without that state or text; with what it has printed.
        """
        deadline = time.monotonic() + timeout
        while True:
            entries = self.ask()
            states = {entry["JobState"] for entry in entries}
            if states == {state} or (text and text in self.output) or (not (state or text) and states <= OVER):
                return self
            if states <= OVER:
                lacks = f"was not seen {state}" if state else f"has not printed {text!r}"
                raise RanklabError(f"Job {self.number} is {', '.join(sorted(states))}, and {lacks}. {self._printed()}")
            if time.monotonic() > deadline:
                self._slurm.run(f"scancel {self.number}")
                lacks = f"is not {state}" if state else f"has not printed {text!r}" if text else "is not over"
                where = ", ".join(sorted({_place(entry) for entry in entries}))
                raise RanklabError(f"Job {self.number} {lacks} after {timeout:g} s: it is {where}. {self._printed()}")
            time.sleep(LOOK)

    def _printed(self) -> str:
        output = self.output
        return f"It printed:\n{output}" if output else "It has printed nothing."

    @property
    def files(self) -> dict[str, str]:
        """What the job has written into files that have its number in their names, by name."""
        found = self._slurm.folder.glob(f"*-{self.number}[-_.]*")
        return {path.name: path.read_text(errors="replace") for path in sorted(found) if path.is_file()}

    @property
    def output(self) -> str:
        """What the batch script has printed, and what it started: its log file; those of an array task by task."""
        # Slurm tells the tasks of an array last one first, before them those that wait, as "2-3".
        tasks = sorted(self.ask(), key=lambda entry: int(re.split(r"\D", entry.get("ArrayTaskId", ""))[0] or 0))
        paths = dict.fromkeys(Path(entry["StdOut"]) for entry in tasks)
        return "".join(path.read_text(errors="replace") for path in paths if path.is_file())

    @property
    def lines(self) -> list[str]:
        """The lines of its output, sorted: tasks print in any order."""
        return sorted(line for line in self.output.splitlines() if line)

    def __repr__(self) -> str:
        return f"job {self.number}: {self.state}"
