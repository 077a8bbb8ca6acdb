import io

import pytest
from rich.console import Console

from bookkit import progress, record
from bookkit.__main__ import main
from bookkit.errors import BookError
from bookkit.notebook import read


def test_outputs_are_stored_in_place_and_normalised(book, capsys):
    path = book.run("chapter", "print('recorded')")
    record.record([path], book.root)
    stored = read(path)
    assert stored.cells[1].outputs[0].text == "recorded\n"
    assert stored.cells[1].execution_count == 1
    assert "version" not in stored.metadata.language_info
    shown = capsys.readouterr().out
    assert "book/part/chapter.ipynb: done in" in shown
    assert "seconds" in shown


def test_recording_twice_gives_the_same_bytes(book):
    path = book.run("chapter", "import sys\nprint('a', flush=True)\nprint('b')", "{1, 2}")
    record.record([path], book.root)
    first = path.read_bytes()
    record.record([path], book.root)
    assert path.read_bytes() == first


def test_a_chapter_that_fails_keeps_what_it_had(book, capsys):
    good = book.run("good", "print(1)")
    bad = book.run("bad", "print(2)", "raise ValueError('no')")
    before = bad.read_bytes()
    assert main(["--root", str(book.root), "record"]) == 1
    assert bad.read_bytes() == before
    assert read(good).cells[1].execution_count == 1
    assert [path.name for path in sorted(bad.parent.iterdir())] == ["bad.ipynb", "good.ipynb"]
    shown = capsys.readouterr().out
    assert "book/part/bad.ipynb" in shown
    assert "ValueError: no" in shown


def test_only_the_chapter_that_is_named(book):
    first, second = book.run("first", "1"), book.run("second", "2")
    untouched = second.read_bytes()
    assert main(["--root", str(book.root), "record", str(first)]) == 1  # it has no figure and no assertion
    assert read(first).cells[1].execution_count == 1
    assert second.read_bytes() == untouched


def test_a_path_that_is_no_chapter(book, capsys):
    book.run("first", "1")
    assert main(["--root", str(book.root), "record", "nowhere.ipynb"]) == 1
    assert "not a chapter" in capsys.readouterr().err


@pytest.mark.parametrize("terminal", [True, False])
def test_control_characters_go_to_terminals_only(monkeypatch, terminal):
    written = io.StringIO()
    monkeypatch.setattr(progress, "console", Console(file=written, force_terminal=terminal))
    with progress.progress("title", 3, "cells") as advance:
        advance(1, "x = 1")
    assert ("\x1b" in written.getvalue()) is terminal
    assert "title" in written.getvalue()


@pytest.mark.parametrize("cell", ["mine = shares[rank] + 1", "root[/tmp]"])
def test_code_is_no_markup(monkeypatch, cell):
    written = io.StringIO()
    monkeypatch.setattr(progress, "console", Console(file=written, force_terminal=True, width=200))
    with progress.progress("a[title]", 3, "cells") as advance:
        advance(1, cell)
    assert cell in written.getvalue()
    assert "a[title]" in written.getvalue()


def test_what_is_recorded_has_ruffs_format(book):
    path = book.run("chapter", "import os,sys\nprint( 'a' )")
    record.record([path], book.root, tidy=True)
    stored = read(path).cells[1]
    assert stored.source == 'import os\nimport sys\n\nprint("a")'
    assert stored.outputs[0].text == "a\n"


def test_a_folder_that_cannot_be_written_is_named_before_anything_runs(book, tmp_path, monkeypatch):
    path = book.run("chapter", f"open({str(tmp_path / 'witness')!r}, 'w').close()")
    monkeypatch.setattr(record.os, "access", lambda place, mode: place != path.parent)
    with pytest.raises(BookError, match="book/part cannot be written"):
        record.record([path], book.root)
    assert not (tmp_path / "witness").exists()
