"""Cells that not every machine can execute: what they were recorded with, and which still wait for such a machine.

The note stands in the cell's metadata as ``recorded``: versions, the GPU's name, and a digest of the source.
"""

import copy
import hashlib
import html
import re
from collections import Counter

import nbformat
from nbformat.v4 import new_output

from bookkit.needs import card, kept, may_be_kept
from bookkit.notebook import code_cells

NOTE = "recorded"
NOT_YET = "Not recorded yet: needs a GPU."
CHANGED = "The cell was changed after that, and this output is of the cell as it was."
SHAPE = re.compile(r"[\s'\"(),]")


def digest(source):
    """A few characters that are others when a cell says something else; ruff's format changes none of them."""
    return hashlib.sha256(SHAPE.sub("", source).encode()).hexdigest()[:8]


def note(notebook):
    """Write into the cells that this machine has executed, and others could not, what they were executed with."""
    for _, _, cell in code_cells(notebook):
        if may_be_kept(cell) and not kept(cell):
            used = card()
            names = [name if number == 1 else f"{number} × {name}" for name, number in Counter(used.names).items()]
            said = {"torch": used.torch, "cuda": used.cuda, "nccl": used.library, "gpu": " and ".join(names)}
            cell.metadata[NOTE] = nbformat.from_dict(said | {"source": digest(cell.source)})


def merged(stored, executed):
    """A chapter as it is stored, with those cells of an execution that not every machine could have executed."""
    result = copy.deepcopy(stored)
    pairs = zip(result.cells, executed.cells, strict=True)
    result.cells = [new if new.cell_type == "code" and may_be_kept(new) else old for old, new in pairs]
    return result


def waiting(notebook):
    """Yield ``(index, why)`` of each cell whose output is missing or of an earlier source, and needs such a machine."""
    for index, _, cell in code_cells(notebook):
        if may_be_kept(cell):
            if unrecorded(cell):
                yield index, "not recorded yet"
            elif changed(cell):
                yield index, "changed since it was recorded"


def unrecorded(cell):
    """Whether a cell that not every machine can execute was executed on none so far."""
    return may_be_kept(cell) and bool(cell.source.strip()) and cell.execution_count is None


def changed(cell):
    """Whether the output that a cell keeps is of another source, or nobody knows of which."""
    return cell.metadata.get(NOTE, {}).get("source") != digest(cell.source)


def caption(cell):
    """What a page says below the output of a cell that not every machine can execute."""
    if unrecorded(cell):
        return NOT_YET
    used = cell.metadata.get(NOTE)
    if not used:
        return "Nobody noted what this was recorded with."
    versions = f"torch {used['torch']}, CUDA {used['cuda']} and NCCL {used['nccl']}"
    told = f"Recorded on {used['gpu']}, with {versions}."
    return f"{told} {CHANGED}" if changed(cell) else told


def shown(notebook):
    """A copy of a chapter for its page: below each such cell stands with what it was recorded, or that it was not."""
    result = copy.deepcopy(notebook)
    for _, _, cell in code_cells(result):
        if may_be_kept(cell):
            words = caption(cell)
            line = f'<p class="rl-recorded">{html.escape(words)}</p>'
            cell.outputs.append(new_output("display_data", data={"text/html": line, "text/plain": words}))
    return result
