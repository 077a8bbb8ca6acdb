"""Python tracebacks in text, cut to the reader's own lines.

:mod:`ranklab.rank.trace` cuts a traceback inside the rank, where the exception is alive; here there is only what the
interpreter wrote before the process ended. Pure.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ..system.backends import anonymous

START = "Traceback (most recent call last):"
FRAME = re.compile(r'\s*File "(.+?)", line (\d+)(?:, in (.+))?$')
LIBRARY = re.compile(r"[/\\](site-packages|dist-packages|lib[/\\]python3[.\d]*)[/\\]|^<")
# torch puts the rank before each line of an uncaught exception (torch/distributed/distributed_c10d.py).
PREFIX = re.compile(r"^\[rank\d+\]:[ ]?", re.MULTILINE)
# What torch's compiled code logs: "[W1121 08:18:22.437000000 socket.cpp:207] …".
NATIVE = re.compile(r"^(?:\[rank\d+\]:)?\[[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ .*$\n?", re.MULTILINE)
MARKS = re.compile(r"^\s*[\^~]+\s*$")


@dataclass
class Raised:
    """An exception that ended a program.

    Attributes:
        error: ``Type: message``, without what differs between runs.
        lines: the reader's lines that led to it, outermost first, then the error.
        before: what was written before it.
    """

    error: str
    lines: list[str]
    before: str = ""


def find(text: str) -> Raised | None:
    """Return the last traceback in what a process wrote to stderr, or None where there is none."""
    text = quiet(PREFIX.sub("", text))
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.strip() == START]
    frames = [number for number, line in enumerate(lines) if FRAME.match(line)]
    # A file that cannot be compiled has a frame and no first line.
    first = starts[-1] if starts else frames[-1] if frames else None
    if first is None:
        return None
    told, number = [], first + bool(starts)
    while number < len(lines) and (lines[number].startswith(" ") or not lines[number].strip()):
        if frame := FRAME.match(lines[number]):
            below = lines[number + 1] if number + 1 < len(lines) else ""
            told.append((frame, below.strip() if below.startswith("    ") else ""))
        number += 1
    error = [line for line in lines[number:] if not MARKS.match(line)]
    if not error:
        return None
    message = anonymous("\n".join(error).strip())
    own = [_line(frame, source) for frame, source in told if not LIBRARY.search(frame[1])]
    before = lines[: starts[0] if starts else first]
    return Raised(message, [*own, *message.splitlines()], "\n".join(before).strip("\n"))


def quiet(text: str) -> str:
    """Return what a process wrote to stderr without the log of torch's compiled code, which differs in each run."""
    return NATIVE.sub("", text)


def _line(frame: re.Match, source: str) -> str:
    where = f"{os.path.basename(frame[1])} line {frame[2]}"
    if frame[3] and frame[3] != "<module>":
        where += f" in {frame[3]}"
    return f"{where}:  {source}" if source else where
