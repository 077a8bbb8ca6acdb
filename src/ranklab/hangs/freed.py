"""Ranks that had to be freed: told is what they were doing, and not how that was ended. Pure."""

from __future__ import annotations

from ..outcome import RankOutcome
from ..system.backends import quiet
from .evidence import state_of

ENDED = "it did not come back, and its process was ended"


def tell(entry: RankOutcome, line: int, cell: str) -> None:
    """Replace the error that freeing has caused by what the rank was doing.

    Args:
        entry: of a rank that was freed, with what was ``seen`` of it before; it becomes "freed" unless it has died.
        line: where its bookmark was, 0 where that is not known.
        cell: text of the cell.
    """
    # IPython says this on stderr where our interrupt reaches a rank that is already reporting an error.
    entry.stderr = quiet(entry.stderr.replace("\nKeyboardInterrupt\n", ""))
    entry.traceback = list(state_of(entry).lines)
    lines = cell.splitlines()
    if entry.seen is None and 0 < line <= len(lines):  # its watchdog could not answer, its bookmark can
        entry.traceback = [f"line {line}:  {lines[line - 1].strip()}"]
    if entry.state != "died":
        entry.state, entry.error = "freed", ""


def tell_ended(entry: RankOutcome) -> None:
    """Say of a rank that even freeing did not bring it back; its own note stays in front."""
    entry.note = f"{entry.note}; {ENDED}".removeprefix("; ")
