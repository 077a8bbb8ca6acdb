"""One notebook, one spelling: what does not matter is removed, so that a diff shows what does.

Text of outputs is kept to the letter: it is what nbval compares and what the reader expects.
"""

import base64
import copy
import hashlib
import re

import nbformat

from bookkit import png
from bookkit.errors import BookError
from bookkit.needs import may_be_kept
from bookkit.notebook import in_solutions, tags, to_bytes

MEASURED = "nbval-ignore-output"

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# No version: it changes with the machine. The lexer is what colours %%px and ! lines.
LANGUAGE = {"name": "python", "pygments_lexer": "python"}
CELL_METADATA = ("mystnb", "recorded", "tags")
HIDDEN = "hide-input"
FOLDED = {"source_hidden": True}
FIRST_COMMENT = re.compile(r"(?:%%.*\n)?# (.+)")
OUTPUT_METADATA = ("image/png", "ranklab")
WIDGET_PREFIX = "application/vnd.jupyter.widget"

VALID_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def normalise(notebook, title="the notebook"):
    """Return a normalised copy of a notebook; normalising twice changes nothing more.

    Code cells are counted 1…n, except those that were never executed: giving those a count
    would hide from ``check`` that they have no output.

    Args:
        notebook: what ``notebook.read`` or ``execute`` returned.
        title: what errors call it.

    Raises:
        BookError: a picture is damaged, or the result is not a valid notebook.
    """
    result = copy.deepcopy(notebook)
    result.nbformat, result.nbformat_minor = 4, 5
    result.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": LANGUAGE})
    number, solutions = 0, in_solutions(result)
    for index, cell in enumerate(result.cells):
        cell.metadata = _only(cell.metadata, CELL_METADATA)
        _fold(cell)
        if index in solutions:
            cell.metadata["jupyter"] = FOLDED  # the site folds all of a solution, JupyterLab each cell
        if not may_be_kept(cell):
            cell.metadata.pop("recorded", None)  # of a tag that the cell had
        if cell.cell_type == "code":
            number += 1
            if cell.execution_count is not None:
                cell.execution_count = number
            try:
                cell.outputs = _outputs(cell)
            except ValueError as error:
                raise BookError(
                    f"{title}, cell [{number}]: a picture is damaged ({error}); record the chapter again"
                ) from error
    _identify(result.cells)
    try:
        nbformat.validate(result)
    except nbformat.ValidationError as error:
        raise BookError(f"{title} is not valid: {error.message}") from error
    return result


def _fold(cell):
    """Fold a hidden cell in JupyterLab too, and let its first comment be what stands on the fold of the site."""
    prompts = ("code_prompt_show", "code_prompt_hide")
    options = {name: value for name, value in cell.metadata.pop("mystnb", {}).items() if name not in prompts}
    if HIDDEN in tags(cell):
        cell.metadata["jupyter"] = FOLDED
        if title := FIRST_COMMENT.match(cell.source):
            options |= dict.fromkeys(prompts, title[1])
    if options:
        cell.metadata["mystnb"] = nbformat.from_dict(options)


def comparable(notebook):
    """The bytes that two recordings of a chapter must share.

    Outputs of cells tagged ``nbval-ignore-output`` are measured numbers and left out.
    """
    result = normalise(notebook)
    for cell in result.cells:
        if cell.cell_type == "code" and MEASURED in tags(cell):
            cell.outputs = []
    return to_bytes(result)


def _only(metadata, names):
    return nbformat.from_dict({name: metadata[name] for name in names if metadata.get(name)})


def _outputs(cell):
    outputs: list[nbformat.NotebookNode] = []
    for output in cell.outputs:
        output = _output(output, cell.execution_count)
        if output is None:
            continue
        if outputs and _same_stream(outputs[-1], output):
            # How a stream is cut into messages depends on timing.
            outputs[-1].text += output.text
        else:
            outputs.append(output)
    return outputs


def _same_stream(first, second):
    return first.output_type == second.output_type == "stream" and first.name == second.name


def _output(output, count):
    """One output in its one spelling, or None where nothing of it is to be stored."""
    output.pop("transient", None)
    if output.output_type == "execute_result":
        output.execution_count = count
    if output.output_type not in ("display_data", "execute_result"):
        return output
    if any(kind.startswith(WIDGET_PREFIX) for kind in output.data):
        return None  # a live display: without its kernel it shows nothing
    output.metadata = _only(output.metadata, OUTPUT_METADATA)
    if "image/png" in output.data:
        image = png.strip(base64.b64decode(output.data["image/png"]))
        output.data["image/png"] = base64.b64encode(image).decode("ascii")
    return output


def _identify(cells):
    """Give each cell an id: its own where valid and unique, else one that follows from its content."""
    seen: set[str] = set()
    for cell in cells:
        if not VALID_ID.match(cell.get("id", "")) or cell.id in seen:
            cell.id = _new_id(cell, seen)
        seen.add(cell.id)


def _new_id(cell, seen):
    attempt = 0
    while True:
        text = f"{cell.cell_type}\n{cell.source}\n{attempt}"
        name = hashlib.sha256(text.encode()).hexdigest()[:8]
        if name not in seen:
            return name
        attempt += 1
