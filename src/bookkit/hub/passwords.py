"""The room's password and the instructor's: made once, in a file that other users of the system may not read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

ROOM, INSTRUCTOR = 9, 30  # bytes; JupyterHub asks for 8 characters and for 32


def make(path: Path) -> dict[str, str]:
    """Return the passwords in a file, which is made where there is none."""
    if not path.exists():
        made = {"room": secrets.token_urlsafe(ROOM), "instructor": secrets.token_urlsafe(INSTRUCTOR)}
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.writelines(f"{name}: {word}\n" for name, word in made.items())
    return read(path)


def read(path: Path) -> dict[str, str]:
    """Return the passwords in a file: ``{"room": …, "instructor": …}``."""
    lines = [line.partition(":") for line in path.read_text(encoding="utf-8").splitlines() if ":" in line]
    return {name.strip(): word.strip() for name, _, word in lines}
