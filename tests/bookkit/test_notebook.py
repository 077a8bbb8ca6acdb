import json

import pytest

from bookkit import notebook
from bookkit.errors import BookError


def test_reading_invents_nothing(tmp_path):
    path = tmp_path / "old.ipynb"
    path.write_text('{"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["a\\n", "b"]}],'
                    ' "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')  # fmt: skip
    assert "id" not in notebook.read(path).cells[0]
    assert notebook.read(path).cells[0].source == "a\nb"


@pytest.mark.parametrize(
    ("text", "sentence"), [("{", "is not a notebook"), ("[]", "format 4"), ('{"nbformat": 3}', "format 4")]
)
def test_what_is_no_notebook_is_named(tmp_path, text, sentence):
    path = tmp_path / "broken.ipynb"
    path.write_text(text)
    with pytest.raises(BookError, match=sentence):
        notebook.read(path)


@pytest.mark.parametrize(
    ("damage", "place"),
    [
        (lambda raw: raw.pop("cells"), "cells"),
        (lambda raw: raw.pop("metadata"), "metadata"),
        (lambda raw: raw.update(cells=[7]), "cells"),
        (lambda raw: raw["cells"][1].pop("execution_count"), "execution_count"),
        (lambda raw: raw["cells"][1].pop("outputs"), "outputs"),
        (lambda raw: raw["cells"][1].update(outputs=[{"output_type": "stream", "name": 3, "text": ""}]), "3 is not"),
    ],
)
def test_a_damaged_notebook_is_named_with_what_is_wrong(tmp_path, make, damage, place):
    raw = json.loads(notebook.to_bytes(make.clean()))
    damage(raw)
    path = tmp_path / "broken.ipynb"
    path.write_text(json.dumps(raw))
    with pytest.raises(BookError, match=f"broken.ipynb is a damaged notebook.*{place}"):
        notebook.read(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BookError, match="does not exist"):
        notebook.read(tmp_path / "none.ipynb")


def test_writing_and_reading_gives_the_same(tmp_path, make):
    path = tmp_path / "chapter.ipynb"
    notebook.write(path, make.clean())
    assert notebook.read(path) == make.clean()
    assert path.read_bytes().endswith(b"}\n")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, make, monkeypatch):
    path = tmp_path / "chapter.ipynb"
    path.write_text("old")
    monkeypatch.setattr(notebook, "to_bytes", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        notebook.write(path, make.clean())
    assert [item.name for item in tmp_path.iterdir()] == ["chapter.ipynb"]
    assert path.read_text() == "old"


def test_cells_are_called_as_jupyter_shows_them(make):
    assert notebook.cell_name(make.clean(), 2) == "cell [2]"
    assert notebook.cell_name(make.clean(), 0) == 'text cell 1 "# A chapter"'
