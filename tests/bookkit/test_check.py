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


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Put a git that runs this shell script first on PATH; None takes every git away."""

    def put(script):
        folder = tmp_path / "programs"
        folder.mkdir()
        if script is None:
            monkeypatch.setenv("PATH", str(folder))
        else:
            (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
            (folder / "git").chmod(0o755)
            monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return put


def test_a_git_that_fails_is_a_finding(book, make, status, git):
    book.add("chapter", make.clean())
    (book.root / ".git").mkdir()
    git("echo 'fatal: detected dubious ownership in repository' >&2; exit 128")
    code, shown = status()
    assert code == 1
    assert ".git: git failed (fatal: detected dubious ownership in repository)" in shown


@pytest.mark.parametrize("checkout", [True, False])
def test_without_git_all_files_are_searched_but_those_that_are_built(book, make, status, git, checkout):
    book.add("chapter", make.clean())
    if checkout:
        (book.root / ".git").mkdir()
        (book.root / ".git" / "config").write_text(PATH)
        git(None)
    for folder in (".venv", "_build", "src/__pycache__", "mine"):
        (book.root / folder).mkdir(parents=True)
        (book.root / folder / "notes.md").write_text(PATH)
    (book.root / "mine" / "pyvenv.cfg").touch()
    assert status()[0] == 0
    (book.root / "notes.md").write_text(PATH)
    code, shown = status()
    assert code == 1
    assert f"notes.md:1: absolute path ({PATH})" in shown


def test_an_unpacked_archive_in_an_ignored_folder_of_another_checkout(book, make, status):
    subprocess.run(["git", "init", "-q"], cwd=book.root.parent, check=True)
    (book.root.parent / ".gitignore").write_text(f"{book.root.name}/\n")
    book.add("chapter", make.clean())
    (book.root / "notes.md").write_text(PATH)
    assert status()[0] == 1


def test_a_syntax_error_does_not_hide_the_findings_of_other_chapters(book, make, status):
    broken, leaking = make.clean(), make.clean()
    broken.cells[2].source = "assert x =="
    leaking.cells[1].outputs = [make.stream(PATH)]
    book.add("broken", broken)
    book.add("leaking", leaking)
    code, shown = status()
    assert code == 1
    assert "book/part/broken.ipynb, cell [2]: Expected an expression" in shown
    assert f"book/part/leaking.ipynb, cell [1]: absolute path in its output ({PATH})" in shown
