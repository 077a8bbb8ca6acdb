import pytest

from bookkit.__main__ import main
from bookkit.build import heaviest, page_weight


@pytest.mark.slow
def test_a_site_is_built_from_stored_outputs_and_leaks_nothing(book, make, capsys):
    book.add("chapter", make.clean())
    assert main(["--root", str(book.root), "build"]) == 0
    index = book.root / "_build" / "book" / "html" / "index.html"
    shown = capsys.readouterr().out
    assert shown.rstrip().endswith(f"The site is at {index}")
    assert "kB compressed" in shown
    page = (index.parent / "book" / "part" / "chapter.html").read_text()
    assert "One white pixel." in page
    assert "rank 0" in page
    assert not (index.parent / "reports").exists()
    leaking = [
        path for path in index.parent.rglob("*") if path.is_file() and str(book.root).encode() in path.read_bytes()
    ]
    assert leaking == []
    assert main(["--root", str(book.root), "check"]) == 0


@pytest.mark.slow
def test_a_warning_is_an_error_and_is_shown(book, make, capsys):
    notebook = make.clean()
    notebook.cells[0].source = "# A chapter\n\n[to nowhere](nowhere.md)"
    book.add("chapter", notebook)
    assert main(["--root", str(book.root), "build"]) == 1
    assert "nowhere.md" in capsys.readouterr().err
    assert (book.root / "_build" / "book" / "log.txt").exists()


@pytest.mark.slow
def test_run_executes_a_copy_and_builds_from_what_it_prints(book, capsys):
    path = book.run("chapter", "print(6 * 7)", "open('left.txt', 'w').close()")
    before = path.read_bytes()
    assert main(["--root", str(book.root), "run", "chapter"]) == 0
    index = book.root / "_build" / "run" / "html" / "index.html"
    assert capsys.readouterr().out.rstrip().endswith(f"The site is at {index}")
    assert ">42" in (index.parent / "book" / "part" / "chapter.html").read_text()
    assert path.read_bytes() == before
    assert not path.with_name("left.txt").exists()


def test_a_page_weighs_what_it_loads(tmp_path):
    (tmp_path / "style.css").write_text("a {}" * 1000)
    (tmp_path / "picture.png").write_bytes(bytes(range(256)) * 40)
    bare, full = tmp_path / "bare.html", tmp_path / "full.html"
    bare.write_text("<p>x</p>")
    full.write_text(
        '<link rel="stylesheet" href="style.css?v=1"><a href="bare.html">x</a><img src="picture.png">'
        '<script src="https://example.org/x.js"></script>'
    )
    assert heaviest(tmp_path)[0] == full
    assert page_weight(bare) < 100 < page_weight(full) < 1000
