"""What learners have started in the background: when their server has ended it is ended too, ``setsid`` or not.

Each server has its learner's home as :attr:`bookkit.leash.Brood.MARK`, and whatever it starts inherits that.
"""

from __future__ import annotations

from collections.abc import Iterable

import psutil

from bookkit.hub.room import Room
from bookkit.leash import HURRY_SECONDS, Brood


def end_left(room: Room, names: Iterable[str]) -> None:
    """Give what these learners have left behind a moment to leave, as ranks do by themselves, and end the rest."""
    broods = [Brood(str(room.home(name))) for name in names]
    psutil.wait_procs([process for brood in broods for process in brood.alive()], timeout=HURRY_SECONDS)
    for brood in broods:
        brood.end()


def learners(room: Room) -> list[str]:
    """Return who has a home in a room."""
    return sorted(home.name for home in room.learners.iterdir()) if room.learners.is_dir() else []
