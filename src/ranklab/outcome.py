"""What a cell left behind on the ranks, as plain data: filled by ``cell``, shown by ``panel``.

Pure: no ipyparallel, no IPython.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
        state: "done", "raised", "died" or "freed" (stopped by ranklab because another rank was in trouble).
        note: one sentence beside the state, for example how a rank died.
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
        advice: what to do now, in one sentence.
        timed_out: whether the deadline ended the cell.
    """

    ranks: list[RankOutcome]
    headline: str = ""
    advice: str = ""
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
