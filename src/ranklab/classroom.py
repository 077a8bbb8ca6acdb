"""What a learner lets an instructor see: verdicts, how many ranks run, and the last hang; nothing without consent.

``RANKLAB_ROOM`` names a folder, and the folder's existence is the consent: ``mkdir`` it and the next verdict is written
there; remove it and nothing is written any more. Files stay on this machine; ``make hub`` has a page that reads them.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

WORDS = 300  # characters of a sentence; an answer's own output can stand in it


def tell_verdict(exercise: str, right: bool, words: str) -> None:
    """Note what a grader said; how often it was asked and whether it was ever right stays with it.

    Args:
        exercise: the name of the grader.
        right: whether the answer was right.
        words: the verdict's.
    """
    with contextlib.suppress(OSError):
        if folder := _folder():
            path = folder / f"exercise-{exercise}.json"
            before = _read(path)
            tries, solved = before.get("tries"), before.get("solved") is True
            tries = tries if isinstance(tries, int) else 0
            _write(path, {"tries": tries + 1, "solved": solved or right, "right": right, "words": words[:WORDS]})


def tell_ranks(size: int, hang: str = "") -> None:
    """Note how many ranks run, and the headline of the cell that hung, where the latest did.

    Args:
        size: number of ranks; 0 where they were stopped.
        hang: the report's first sentence.
    """
    with contextlib.suppress(OSError):
        if folder := _folder():
            _write(folder / "ranks.json", {"ranks": size, "hang": hang[:WORDS], "kernel": os.getpid()})


def _folder() -> Path | None:
    """The folder, where it is named and there."""
    folder = os.environ.get("RANKLAB_ROOM")
    return Path(folder) if folder and os.path.isdir(folder) else None


def _read(path: Path) -> dict:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}


def _write(path: Path, told: dict) -> None:
    """Replace a file in one step, so that nobody reads half of it."""
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    fresh.write_text(json.dumps({**told, "at": round(time.time())}), encoding="utf-8")
    fresh.replace(path)
