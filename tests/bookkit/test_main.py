"""What the verbs say where something is missing, and that they say all of it."""

import io

import pytest
from rich.console import Console

from bookkit import __main__, needs
from bookkit.__main__ import main
from bookkit.errors import ChapterError
from bookkit.notebook import read


@pytest.fixture
def no_hosts(monkeypatch):
    """A machine on which nobody can make hosts."""
    monkeypatch.setattr(needs, "can_make_hosts", lambda: False)


def test_record_refuses_all_chapters_that_lack_hosts_before_the_first_runs(book, no_hosts, capsys):
    plain = book.run("plain", "print(1)")
    for name in ("first", "second"):
        book.run(name, "print(2)", tags=["needs-hosts"])
    assert main(["--root", str(book.root), "record"]) == 1
    shown = capsys.readouterr().err
    assert "makes no hosts (`make doctor` says why): book/part/first.ipynb, book/part/second.ipynb." in shown
    assert read(plain).cells[1].execution_count is None


def test_run_executes_chapters_that_lack_hosts_and_says_so(book, no_hosts, capsys):
    book.run("plain", "print(1)")
    book.run("hosts", "lab = None", "if lab:\n    print('computer1')\nprint(6 * 7)", tags=["needs-hosts"])
    assert main(["--root", str(book.root), "run"]) == 0
    shown = capsys.readouterr().out
    assert "what needs that does nothing in book/part/hosts.ipynb\n" in shown
    page = book.root / "_build" / "run" / "html" / "book" / "part" / "hosts.html"
    assert ">42" in page.read_text()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_long_error_is_shown_whole(book, monkeypatch, width):
    words = [f"word{number}" for number in range(60)]
    line = " + ".join(words[:20])

    def fail(root, paths):
        raise ChapterError("chapter.ipynb", "failed", cell="cell [1]", source=line, error=" ".join(words))

    written = io.StringIO()
    monkeypatch.setattr(__main__, "console", Console(file=written, soft_wrap=True, width=width))
    monkeypatch.setitem(__main__.VERBS, "run", fail)
    assert main(["--root", str(book.root), "run"]) == 1
    shown = "".join(written.getvalue().replace("│", "").split())
    assert all(word in shown for word in words)
    assert "+".join(words[:20]) in shown
    assert max(map(len, written.getvalue().splitlines())) == width


def test_a_file_that_the_system_refuses_is_named(book, make, capsys):
    book.add("chapter", make.clean())
    (book.root / "_build").touch()
    assert main(["--root", str(book.root), "build"]) == 1
    assert capsys.readouterr().err.startswith(f"{book.root / '_build'}")


def test_an_error_of_the_system_about_no_file_keeps_its_traceback(book, monkeypatch):
    def fail(root, paths):
        raise OSError("something else")

    monkeypatch.setitem(__main__.VERBS, "build", fail)
    with pytest.raises(OSError, match="something else"):
        main(["--root", str(book.root), "build"])
