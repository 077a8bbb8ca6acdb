"""Small books in temporary folders: what the real one is made of, without ranks."""

import base64
import struct
import zlib
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bookkit import rules, voice
from bookkit.normalise import normalise
from bookkit.notebook import write

CONFIG = """
title: A small book
author: Nobody
only_build_toc_files: true
execute: {execute_notebooks: "off"}
html: {use_repository_button: false}
sphinx: {extra_extensions: [sphinx_exercise]}
"""
WORDS = """
# A chapter

```{exercise-start}
:label: part-sum
```

How much is it?

```{exercise-end}
```

````{solution-start} part-sum
````

One.

````{solution-end}
````
"""


@pytest.fixture(autouse=True)
def unheard(monkeypatch):
    """Small chapters need not speak as large ones do; test_voice.py asks for that."""
    monkeypatch.setattr(rules, "RULES", [item for item in rules.RULES if item.look.__module__ != voice.__name__])


def png(text=None):
    """A PNG of one white pixel, with a text chunk where one is given."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))]
    if text:
        parts.append(chunk(b"tEXt", b"Software\0" + text))
    parts += [chunk(b"IDAT", zlib.compress(b"\0\xff")), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def clean():
    """An executed chapter that no rule objects to."""
    drawn = {"image/png": base64.b64encode(png()).decode(), "text/plain": "<Figure size 1x1 with 1 Axes>"}
    cells = [
        new_markdown_cell(WORDS.strip()),
        new_code_cell('%%px\nprint("rank 0")', execution_count=1, outputs=[new_output("stream", text="rank 0\n")]),
        new_code_cell("x = 1\nassert x == 1", execution_count=2),
        new_code_cell(
            "draw(x)  # noqa: F821",
            execution_count=3,
            metadata={"mystnb": {"image": {"alt": "One white pixel."}}},
            outputs=[new_output("display_data", data=drawn)],
        ),
    ]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"  # nbformat's own would be random
    return normalise(new_notebook(cells=cells))


def stream(text, name="stdout"):
    """A stored stream."""
    return new_output("stream", text=text, name=name)


def display(**data):
    """A stored display; ``html=…`` is short for ``text/html``."""
    kinds = {"html": "text/html", "plain": "text/plain", "png": "image/png"}
    return new_output("display_data", data={kinds[kind]: value for kind, value in data.items()})


@pytest.fixture
def make():
    """The builders of this file."""
    return SimpleNamespace(
        clean=clean, stream=stream, display=display, png=png,
        code=new_code_cell, text=new_markdown_cell, notebook=new_notebook, from_dict=nbformat.from_dict,
    )  # fmt: skip


class Book:
    """A book in a folder of its own."""

    def __init__(self, root):
        self.root = root
        (root / "book" / "part").mkdir(parents=True)
        (root / "_config.yml").write_text(CONFIG)
        (root / "book" / "index.md").write_text("# A small book\n")
        self.chapters = []

    def add(self, name, notebook):
        """Write a chapter and name it in _toc.yml; returns its path."""
        path = self.root / "book" / "part" / f"{name}.ipynb"
        write(path, notebook)
        self.chapters.append(f"book/part/{name}")
        listed = "".join(f"      - file: {chapter}\n" for chapter in self.chapters)
        (self.root / "_toc.yml").write_text(
            f"format: jb-book\nroot: book/index\nparts:\n  - caption: Part\n    chapters:\n{listed}"
        )
        return path

    def run(self, name, *sources, tags=()):
        """Add a chapter of code cells that were never executed; the last one gets the tags."""
        cells = [new_markdown_cell("# A chapter"), *map(new_code_cell, sources)]
        cells[-1].metadata.tags = list(tags)
        return self.add(name, normalise(new_notebook(cells=cells)))


@pytest.fixture
def book(tmp_path):
    """An empty book; fill it with ``add`` and ``run``."""
    return Book(tmp_path / "book-under-test")
