"""What the learners let the instructor see: the small files that ``ranklab.classroom`` writes, read with suspicion."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from bookkit.hub.room import SHARED, Room

LARGEST = 10_000  # bytes; the files are a learner's, who may have put anything there
MOST = 500  # files of a learner


@dataclass
class Learner:
    """What one learner shows.

    Attributes:
        name: who.
        shows: whether the learner shares anything.
        ranks: how many ranks run.
        hang: the headline of the latest cell, where it hung.
        at: seconds since the epoch of the latest news, 0 where there is none.
        exercises: for each exercise that was tried, whether it was solved, how often tried, and the latest words.
    """

    name: str
    shows: bool = False
    ranks: int = 0
    hang: str = ""
    at: float = 0.0
    exercises: dict[str, tuple[bool, int, str]] = field(default_factory=dict)


def look(room: Room) -> list[Learner]:
    """Return the learners of a room who have a home, by name."""
    if not room.learners.is_dir():
        return []
    learners = []
    for home in sorted(room.learners.iterdir()):
        try:
            if home.is_dir():
                learners.append(look_at(room, home.name))
        except OSError:  # a home that its learner has closed to everybody: no reason to show nothing of the others
            learners.append(Learner(home.name))
    return learners


def look_at(room: Room, name: str) -> Learner:
    """Return what one learner shows."""
    learner, folder = Learner(name), room.home(name) / SHARED
    if folder.is_symlink() or not folder.is_dir():
        return learner
    learner.shows = True
    for path in sorted(folder.glob("*.json"))[:MOST]:
        told = _read(path)
        learner.at = max(learner.at, _number(told.get("at")))
        if path.name == "ranks.json" and _lives(told.get("kernel")):
            learner.ranks, learner.hang = int(_number(told.get("ranks"))), _text(told.get("hang"))
        elif path.name.startswith("exercise-"):
            exercise = path.stem.removeprefix("exercise-")
            tries = int(_number(told.get("tries")))
            learner.exercises[exercise] = (told.get("solved") is True, tries, _text(told.get("words")))
    return learner


def _read(path: Path) -> dict:
    """The object in a file that is plain, small and no link; else nothing."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return {}
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            return {}
        told = json.loads(os.read(handle, LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    finally:
        os.close(handle)
    return told if isinstance(told, dict) else {}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e12 else 0.0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _lives(kernel: object) -> bool:
    return isinstance(kernel, int) and kernel > 0 and os.path.exists(f"/proc/{kernel}")
