"""What a job that stands still has left: the logs, and what its ranks told. Plain data, and its texts."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAIN = "MainThread"
PATH = re.compile(r"/\S*/")  # of the machine on which torch was built
LATEST = 6  # entries of a dump that are shown for each group


@dataclass(frozen=True)
class Scene:
    """What one rank left.

    Attributes:
        rank: which.
        log: what it printed, stdout and stderr together.
        exit_code: how it ended, as ``subprocess`` counts: −9 is SIGKILL; None where it has not ended.
        told: what it told when it was asked: "stacks" and "calls"; empty where it did not answer.
    """

    rank: int
    log: str
    exit_code: int | None
    told: Mapping[str, Any]

    @property
    def last_line(self) -> str:
        """The last line of its log, without paths."""
        return PATH.sub("", (self.log.rstrip().splitlines() or ["(nothing)"])[-1])

    @property
    def line(self) -> int:
        """The line of the program in which its main thread stands; 0 where that is not known."""
        return next((lines[-1] for lines in self._lines() if lines), 0)

    @property
    def lines(self) -> list[int]:
        """All lines of the program that are in its main thread's stack, the latest call last."""
        return next(iter(self._lines()), [])

    def _lines(self) -> list[list[int]]:
        stacks = [stack for stack in self.told.get("stacks", ()) if stack["thread"] == MAIN]
        return [[frame["line"] for frame in stack["frames"] if frame["line"]] for stack in stacks]

    @property
    def silent(self) -> str:
        """Why it told nothing, a sentence; "" where it did."""
        if self.exit_code is None:
            return "" if self.told else f"rank {self.rank} does not answer. The system says: state T (stopped)."
        if self.exit_code < 0:
            name = signal.Signals(-self.exit_code).name
            return f"rank {self.rank} has ended: its process was ended by {name}."
        return f"rank {self.rank} has ended with exit status {self.exit_code}."

    def stacks(self) -> str:
        """Return where its threads stand, as py-spy or faulthandler would tell."""
        if self.silent:
            return self.silent
        told = []
        for stack in self.told["stacks"]:
            told.append(f"rank {self.rank}, {stack['thread']}, most recent call last")
            for frame in stack["frames"]:
                if frame["line"]:
                    told.append(f"  program.py, line {frame['line']}, in {frame['name']}\n    {frame['text']}")
                else:
                    told.append(f"  {frame['text']}, in {frame['name']}")
        return "\n".join(told)

    def dump(self) -> str:
        """Return the latest collectives in its flight recorder, group by group."""
        if self.silent:
            return self.silent
        calls = self.told["calls"]
        told = [f"rank {self.rank}, flight recorder, latest call last"]
        for group in sorted({entry["group"] for entry in calls["entries"]}, key=lambda name: (len(name), name)):
            ranks = ", ".join(map(str, calls["groups"].get(group, [])))
            told.append(f"  group {group} (ranks {ranks})")
            latest = [entry for entry in calls["entries"] if entry["group"] == group][-LATEST:]
            for entry in latest:
                sizes = " ".join(map(str, entry["sizes"]))
                told.append(f"    {entry['number']:>4}  {entry['name']:<11} {sizes} {entry['type']}".rstrip())
        return "\n".join(told)
