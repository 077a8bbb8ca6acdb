"""`make run` goes on after a chapter that fails, works side by side, and builds the site all the same."""

import os

import psutil
import pytest

from bookkit import machine
from bookkit.__main__ import main
from bookkit.errors import BookError, ChapterError
from bookkit.notebook import read
from bookkit.run import notice, run, short

MEET = """
import pathlib, time
pathlib.Path({here!r}).touch()
deadline = time.monotonic() + 60
while not pathlib.Path({other!r}).exists() and time.monotonic() < deadline:
    time.sleep(0.05)
assert pathlib.Path({other!r}).exists()
"""


def page(book, name):
    return (book.root / "_build" / "run" / "html" / "book" / "part" / f"{name}.html").read_text()


def test_after_a_chapter_that_fails_the_others_run_and_the_site_is_built(book, capsys):
    book.run("bad", "print(6 * 7)", "assert 1 > 2, 'one is not more'")
    book.run("good", "print(7 * 8)")
    assert main(["--root", str(book.root), "run"]) == 1
    shown = capsys.readouterr().out
    assert "The site is at" in shown
    told = shown[shown.index("failed", shown.index("The site is at")) :].split("\n")[1]
    assert told.split(maxsplit=3) == ["book/part/bad.ipynb", "cell", "[2]", "failed: AssertionError: one is not more"]
    assert ">56" in page(book, "good")
    assert "the chapter stopped" not in page(book, "good")
    bad = page(book, "bad")
    assert bad.index("<h1>") < bad.index("On this machine the chapter stopped") < bad.index("Its cell [2] failed")
    assert "AssertionError: one is not more" in bad
    assert ">42" not in bad  # what the book stores stands there, here nothing, and not half of a run


def test_two_chapters_wait_for_each_other(book, tmp_path):
    here, other = str(tmp_path / "here"), str(tmp_path / "other")
    paths = [
        book.run("first", MEET.format(here=here, other=other)),
        book.run("second", MEET.format(here=other, other=here)),
    ]
    assert run(paths, book.root, beside=2) == {}


def test_one_place_means_one_after_the_other(book, tmp_path):
    alone = f"import pathlib, time\nbusy = pathlib.Path({str(tmp_path / 'busy')!r})\nassert not busy.exists()\n"
    alone += "busy.touch()\ntime.sleep(0.5)\nbusy.unlink()"
    assert run([book.run(name, alone) for name in ("first", "second")], book.root, beside=1) == {}


def test_each_failure_is_kept_with_its_chapter_in_the_order_of_the_book(book):
    paths = [
        book.run("slow", "import time\ntime.sleep(1)\n1 / 0"),
        book.run("fine", "print(1)"),
        book.run("quick", "raise KeyError('x')"),
    ]
    failed = run(paths, book.root, beside=3)
    assert [path.stem for path in failed] == ["slow", "quick"]
    assert [short(error) for error in failed.values()] == [
        "failed: ZeroDivisionError: division by zero",
        "failed: KeyError: 'x'",
    ]
    assert read(paths[1]).cells[1].outputs[0].text == "1\n"


def test_a_damaged_chapter_is_a_failure_like_any_other(book):
    damaged, fine = book.run("damaged", "1"), book.run("fine", "print(1)")
    damaged.write_text("{")
    failed = run([damaged, fine], book.root, beside=1)
    assert list(failed) == [damaged]
    assert "is not a notebook" in short(failed[damaged])


def test_what_a_cell_said_cannot_leave_its_box(book):
    path = book.run("chapter", "print(1)")
    said = "ValueError: ```{raw} html"
    notice(path, ChapterError("chapter.ipynb", "failed", cell="cell [1]", error=f"Traceback\n\x1b[31m{said}\x1b[0m"))
    text = read(path).cells[0].source
    assert text.startswith("# A chapter\n\n````````{admonition} On this machine the chapter stopped\n")
    assert f"```````text\n{said}\n```````\n" in text
    assert "make run CH=chapter" in text


def test_a_reason_without_a_cell(book):
    path = book.run("chapter", "print(1)")
    notice(path, ChapterError("chapter.ipynb", "the kernel did not start"))
    assert "\nIt: the kernel did not start." in read(path).cells[0].source
    assert short(BookError("No such file")) == "No such file"


@pytest.mark.parametrize(("cores", "gigabytes", "places"), [(2, 64, 2), (8, 3, 3), (1, 64, 1), (4, 0, 1)])
def test_a_machine_has_a_place_for_each_core_with_memory(monkeypatch, cores, gigabytes, places):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    memory = psutil.virtual_memory()._replace(available=gigabytes << 30)
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: memory)
    assert machine.places() == places
