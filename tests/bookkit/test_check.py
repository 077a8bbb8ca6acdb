import subprocess

import pytest

from bookkit.__main__ import main

PATH = "/home/ada/data.pt"  # bookkit: planted
LINE_WITH_MARK = f"x = {PATH!r}  # bookkit: planted"


@pytest.fixture
def status(book, capsys):
    """Run `check` on the book; returns the exit status and what it printed."""

    def check(*paths):
        code = main(["--root", str(book.root), "check", *map(str, paths)])
        return code, capsys.readouterr().out

    return check


def test_a_clean_book(book, make, status):
    book.add("chapter", make.clean())
    code, shown = status()
    assert code == 0
    assert shown.endswith("1 chapter, 3 cells, 0 findings\n")


@pytest.mark.parametrize(
    ("plant", "sentence"),
    [
        (lambda cell, make: cell.update(execution_count=None), "cell [1]: the cell was never executed"),
        (
            lambda cell, make: cell.update(outputs=[make.stream(PATH)]),
            f"absolute path in its output ({PATH})",
        ),
        (lambda cell, make: cell.update(outputs=[make.stream("W", "stderr")]), "stderr is stored (W)"),
    ],
)
def test_what_is_planted_is_caught(book, make, status, plant, sentence):
    notebook = make.clean()
    plant(notebook.cells[1], make)
    path = book.add("chapter", notebook)
    for code, shown in (status(), status(path)):
        assert code == 1
        assert sentence in shown
        assert shown.endswith("1 chapter, 3 cells, 1 finding\n")


def test_a_notebook_outside_the_toc(book, make, status):
    path = book.add("chapter", make.clean())
    path.with_name("lost.ipynb").write_bytes(path.read_bytes())
    code, shown = status()
    assert code == 1
    assert "book/part/lost.ipynb: not in _toc.yml" in shown


def test_a_book_without_chapters_is_no_clean_book(book, status):
    (book.root / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    code, shown = status()
    assert code == 1
    assert "it names no notebook" in shown


def test_leaks_in_tracked_and_new_files_but_not_in_ignored_ones(book, make, status):
    book.add("chapter", make.clean())
    subprocess.run(["git", "init", "-q"], cwd=book.root, check=True)
    (book.root / ".gitignore").write_text("ignored.txt\n")
    (book.root / "ignored.txt").write_text(PATH)
    (book.root / "planted.py").write_text(LINE_WITH_MARK)
    (book.root / "picture.png").write_bytes(make.png())
    assert status()[0] == 0
    (book.root / "notes.md").write_text(f"first\nsee {PATH}\n")
    code, shown = status()
    assert code == 1
    assert f"notes.md:2: absolute path ({PATH})" in shown


def test_leaks_in_built_pages(book, make, status):
    book.add("chapter", make.clean())
    page = book.root / "_build" / "run" / "html" / "page.html"
    page.parent.mkdir(parents=True)
    page.write_text(f"<p>{PATH}</p>")
    code, shown = status()
    assert code == 1
    assert "_build/run/html/page.html:1: absolute path" in shown
