"""A stored chapter as the rules see it: its cells, and what a reader sees of their outputs."""

from functools import cached_property
from pathlib import Path

from bookkit import leaks
from bookkit.notebook import code_cells, read

MARKED_UP = ("text/html", "image/svg+xml")


class Chapter:
    """A stored chapter as the rules see it.

    Args:
        path: the notebook.
        title: what findings call it; its path where not given.
    """

    def __init__(self, path, title=None):
        self.path, self.title = Path(path), title or str(path)
        self.notebook = read(path)
        self.code = list(code_cells(self.notebook))

    @cached_property
    def outputs(self):
        """``(index, cell, text, visible)`` of each output: all of its text, and what a reader sees."""
        return [
            (index, cell, *map(leaks.plain, texts(output))) for index, _, cell in self.code for output in cell.outputs
        ]


def texts(output):
    """All text of an output, and the part of it that a reader sees."""
    if output.output_type == "stream":
        return output.text, output.text
    if output.output_type == "error":
        text = "\n".join([output.ename, output.evalue, *output.traceback])
        return text, text
    # Pictures have no text, except those that are written in it.
    texts = {kind: str(data) for kind, data in output.data.items() if "image/" not in kind or kind in MARKED_UP}
    seen = [leaks.visible(text) if kind in MARKED_UP else text for kind, text in texts.items()]
    return "\n".join(texts.values()), "\n".join(seen)
