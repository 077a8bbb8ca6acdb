"""Notebooks as files: read without guessing, name a cell, write whole or not at all."""

import json
import os
import tempfile
from pathlib import Path

import nbformat
from nbformat.v4.rwbase import rejoin_lines
from nbformat.validator import iter_validate

from bookkit.errors import BookError


def read(path):
    """Read a notebook exactly as stored.

    nbformat.read would invent random cell ids where none are; here nothing is added.

    Raises:
        BookError: the file is missing, is no notebook of format 4, or lacks what each has (cells, counts, outputs).
    """
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BookError(f"{path} does not exist") from None
    except ValueError as error:
        raise BookError(f"{path} is not a notebook: {error}") from None
    if not isinstance(raw, dict) or raw.get("nbformat") != 4:
        raise BookError(f"{path} is not a notebook of format 4; open and save it in JupyterLab")
    if wrong := next(iter_validate(_identified(raw), version=4, version_minor=5, relax_add_props=True), None):
        place = "".join(f"[{step!r}]" for step in wrong.relative_path)
        raise BookError(
            f"{path} is a damaged notebook, at {place or 'its top'}: {wrong.message}; take it from git again"
        )
    return rejoin_lines(nbformat.from_dict(raw))


def _identified(raw):
    """A notebook to validate: with ids, for those that are missing or wrong are ours to make."""
    if not isinstance(raw.get("cells"), list):
        return raw
    cells = [cell | {"id": "any"} if isinstance(cell, dict) else cell for cell in raw["cells"]]
    return raw | {"cells": cells}


def to_bytes(notebook):
    """A notebook as the bytes of its file: indent 1, sorted keys, one newline at the end."""
    return (nbformat.writes(notebook, version=nbformat.NO_CONVERT).rstrip("\n") + "\n").encode("utf-8")


def write(path, notebook):
    """Store a notebook at once: whoever reads sees the old file or the new one, never a part."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(to_bytes(notebook))
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def tags(cell):
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def code_cells(notebook):
    """Yield ``(index, number, cell)`` of each code cell: place among all cells, and number from 1."""
    number = 0
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            number += 1
            yield index, number, cell


def in_solutions(notebook):
    """The places, among all cells, of the code cells between a ``{solution-start}`` and its ``{solution-end}``."""
    places, inside = set(), False
    for index, cell in enumerate(notebook.cells):
        starts, ends = cell.source.rfind("{solution-start}"), cell.source.rfind("{solution-end}")
        if cell.cell_type == "code":
            places |= {index} if inside else set()
        elif starts != ends:
            inside = starts > ends
    return places


def cell_name(notebook, index):
    """What an author would call a cell: ``cell [7]`` as Jupyter shows it, or its first words."""
    cell = notebook.cells[index]
    if cell.cell_type == "code":
        return f"cell [{sum(other.cell_type == 'code' for other in notebook.cells[: index + 1])}]"
    words = cell.source.strip().splitlines()
    first = words[0][:40] if words else ""
    return f'text cell {index + 1} "{first}"'
