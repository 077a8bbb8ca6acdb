"""The book as it is, read-only, and a copy of it for each learner, made once and never written over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bookkit.hub.room import Room

CHAFF = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__", ".DS_Store")
SIGNATURES = Path(".local", "share", "jupyter")  # where JupyterLab looks for whom it trusts, below a home
BOOK, ORIGINAL = "book", "original"


def refresh_original(room: Room) -> None:
    """Write the book anew into the room's ``original``, with signatures of its notebooks, and take its write bits.

    JupyterLab takes styles and folds from notebooks that nobody has signed.
    """
    fresh = room.folder / f".{ORIGINAL}-new"
    _remove(fresh)
    shutil.copytree(room.root / BOOK, fresh / BOOK, ignore=CHAFF)
    signatures = fresh / SIGNATURES
    signatures.mkdir(parents=True)
    notebooks = sorted(map(str, (fresh / BOOK).rglob("*.ipynb")))
    environment = {**os.environ, "JUPYTER_DATA_DIR": str(signatures)}
    command = [sys.executable, "-m", "nbformat.sign", *notebooks]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    for path in (fresh / BOOK).rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    _remove(room.original)
    fresh.rename(room.original)


def welcome(room: Room, learner: str) -> Path:
    """Give a learner a home with a copy of the book, and return the home; what is there already stays as it is."""
    home = room.home(learner)
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    link = home / ORIGINAL
    if not link.is_symlink() and not link.exists():
        link.symlink_to(room.original / BOOK)
    if not (home / SIGNATURES).exists():
        shutil.copytree(room.original / SIGNATURES, home / SIGNATURES)
    if not (home / BOOK).exists():
        fresh = home / f".{BOOK}-new"  # a copy that was cut short must not pass for a whole one
        _remove(fresh)
        shutil.copytree(room.original / BOOK, fresh, copy_function=shutil.copyfile)
        for folder in [fresh, *(path for path in fresh.rglob("*") if path.is_dir())]:
            folder.chmod(0o755)  # copytree takes a folder's mode along
        fresh.rename(home / BOOK)
    return home


def _remove(folder: Path) -> None:
    """Remove a folder, also one whose folders nobody may write in."""
    if folder.exists():
        for path in [folder, *(path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())]:
            path.chmod(0o755)
        shutil.rmtree(folder)
