"""What a cell left behind on the ranks, as plain data: filled by ``cell``, shown by ``panel``.

Pure: no ipyparallel, no IPython.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .state import RankState

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
LIMIT = 20_000


@dataclass
class RankOutcome:
    """Everything one rank printed, returned, displayed or raised in one cell.

    Attributes:
        rank: the rank.
        stdout: text it printed, without colour codes, carriage returns applied.
        stderr: text it wrote to stderr.
        value: text of the value on the cell's last line, "" where there is none.
        displays: MIME bundles it displayed, in order.
        error: ``Type: message`` of what it raised, "" where it raised nothing.
        traceback: the error cut to the reader's cells, the last line being ``error``.
        state: "done", "raised", "died", "lost" (its partner died) or "freed" (stopped by ranklab because another rank
            was in trouble).
        note: a few words beside the state, for example how a rank died.
        seen: what its watchdog told before it was freed; None where it gave no answer or nobody asked.
        exit_code: how its process ended, where it died and this is known.
        last_line: the line of the cell in which it died, 0 where that is not known.
        last_words: what compiled code in it wrote to stderr before it died.
        memory: a sentence where the system killed it for lack of memory.
        torchs_log: lines of torch's own log that were taken out of what it wrote.
    """

    rank: int
    stdout: str = ""
    stderr: str = ""
    value: str = ""
    displays: list[dict] = field(default_factory=list)
    error: str = ""
    traceback: list[str] = field(default_factory=list)
    state: str = "done"
    note: str = ""
    seen: RankState | None = None
    exit_code: int | None = None
    last_line: int = 0
    last_words: str = ""
    memory: str = ""
    torchs_log: str = ""

    @property
    def text(self) -> str:
        """What the rank printed, then its value."""
        return "\n".join(part for part in (self.stdout.rstrip("\n"), self.value) if part)


@dataclass
class CellOutcome:
    """One cell on all ranks it was sent to.

    Attributes:
        ranks: one entry a rank, in rank order.
        headline: what went wrong first, in one sentence; "" where nothing did.
        warning: what is wrong with a cell that came to its end.
        cause: the likely cause, one sentence.
        fix: what to do about the cause, one sentence.
        advice: what state the ranks are in now.
        details: what the report folds away, with the ranks that it is true of.
        torchs_log: what torch's own log says, folded away too, with the ranks that wrote it.
        timed_out: whether the deadline ended the cell.
    """

    ranks: list[RankOutcome]
    headline: str = ""
    warning: str = ""
    cause: str = ""
    fix: str = ""
    advice: str = ""
    details: list[tuple[list[int], str]] = field(default_factory=list)
    torchs_log: list[tuple[list[int], str]] = field(default_factory=list)
    timed_out: bool = False


def clean(text: str) -> str:
    """Return text as a terminal would leave it: no colour codes, carriage returns applied, not endless."""
    text = ANSI.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    if len(text) > LIMIT:
        half = LIMIT // 2
        left_out = len(text) - 2 * half
        text = f"{text[:half]}\n… {left_out} characters left out …\n{text[-half:]}"
    return text
