"""Compare chapters with another torch than the one they were recorded with, and write what no longer holds."""

import datetime
import json
import os
import platform
import subprocess
import tempfile
from pathlib import Path

from bookkit.build import BUILD
from bookkit.drift_lines import blame
from bookkit.drift_page import page
from bookkit.drifted import NOTES
from bookkit.errors import BookError
from bookkit.needs import no_gpu
from bookkit.notebook import read
from bookkit.overlay import built_for, overlay, version_in
from bookkit.progress import console

PAGE = "book/does-it-still-hold.md"
COMPARE = (
    "-p", "bookkit.needs", "-p", "bookkit.drifted", "-p", "no:cacheprovider", "-q", "--tb=no", "-n", "auto",
    "--dist", "loadfile", "--no-loadscope-reorder", "--nbval", "--nbval-current-env",
    "--nbval-cell-timeout=600", "--nbval-kernel-startup-timeout=600",
)  # fmt: skip
COMPARED = (0, 1)  # pytest's status: all is as stored; some of it is not


def drift(paths, root, torch="", whole=False):
    """Compare chapters with another torch in an environment of its own, and write the page of what changed.

    Args:
        paths: the chapters.
        root: the top of the book.
        torch: the version; the newest that pip finds where none is named.
        whole: whether ``paths`` are all chapters of the book.

    Returns:
        The path of the page.

    Raises:
        BookError: pip has no such torch, or the comparison could not be made.
    """
    root = Path(root)
    folder = root / BUILD / "drift" / f"torch-{torch or 'newest'}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = overlay(folder, f"torch=={torch}" if torch else "torch")
    notes = compared(python, paths, root)
    blame(((_code(root / f"{path}.ipynb"), note["cells"]) for path, note in notes.items()), python)
    written = root / PAGE
    versions = {"book": version_in(None, "torch"), "other": version_in(python, "torch")}
    versions |= {"book_for": built_for(None), "other_for": built_for(python)}
    versions |= {"python": platform.python_version(), "system": platform.system()}
    versions["gpu"] = "without a GPU" if no_gpu() else "with a GPU"
    written.write_text(page(notes, versions, datetime.date.today(), whole), encoding="utf-8")
    return written


def compared(python, paths, root):
    """Run nbval's comparison of chapters with an interpreter and return the notes of each, in the order of ``paths``.

    Raises:
        BookError: pytest did not come to its end.
    """
    with tempfile.TemporaryDirectory(prefix="bookkit-") as place:
        notes = Path(place, "notes.json")
        command = [python, "-m", "bookkit.leash", "pytest", *COMPARE, *map(str, paths)]
        status = subprocess.call(command, cwd=root, env=os.environ | {NOTES: str(notes)})
        if status not in COMPARED or not notes.exists():
            raise BookError(f"The comparison ended with status {status}; what it printed says why. Nothing was written")
        found = json.loads(notes.read_text(encoding="utf-8"))
    console.print(f"Compared: {', '.join(path.stem for path in paths)}")
    return entitled(found, paths, root)


def entitled(found, paths, root):
    """Notes by the page of each chapter, with its title, in the order of ``paths``."""
    nothing: dict = {"compared": 0, "cells": []}
    named = {}
    for path in paths:
        title = read(path).cells[0].source.partition("\n")[0].removeprefix("# ")
        named[path.relative_to(root).with_suffix("")] = found.get(path.stem, nothing) | {"title": title}
    return named


def _code(path):
    """The source of each code cell of a chapter."""
    return [cell.source for cell in read(path).cells if cell.cell_type == "code"]
