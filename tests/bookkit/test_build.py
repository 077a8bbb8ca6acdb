import pytest

from bookkit.__main__ import main
from bookkit.build import staged


def test_a_site_is_built_from_stored_outputs_and_leaks_nothing(book, make, capsys):
    book.add("chapter", make.clean())
    assert main(["--root", str(book.root), "build"]) == 0
    index = book.root / "_build" / "book" / "html" / "index.html"
    shown = capsys.readouterr().out
    assert shown.rstrip().endswith(f"The site is at {index}")
    page = (index.parent / "book" / "part" / "chapter.html").read_text()
    assert "One white pixel." in page
    assert "rank 0" in page
    assert not (index.parent / "reports").exists()
    leaking = [
        path for path in index.parent.rglob("*") if path.is_file() and str(book.root).encode() in path.read_bytes()
    ]
    assert leaking == []
    assert main(["--root", str(book.root), "check"]) == 0


def test_a_warning_is_an_error_and_is_shown(book, make, capsys):
    notebook = make.clean()
    notebook.cells[0].source = "# A chapter\n\n[to nowhere](nowhere.md)"
    book.add("chapter", notebook)
    assert main(["--root", str(book.root), "build"]) == 1
    assert "nowhere.md" in capsys.readouterr().err
    assert (book.root / "_build" / "book" / "log.txt").exists()


def test_run_executes_a_copy_and_builds_from_what_it_prints(book, capsys):
    path = book.run("chapter", "print(6 * 7)", "open('left.txt', 'w').close()")
    before = path.read_bytes()
    assert main(["--root", str(book.root), "run", "chapter"]) == 0
    index = book.root / "_build" / "run" / "html" / "index.html"
    assert capsys.readouterr().out.rstrip().endswith(f"The site is at {index}")
    assert ">42" in (index.parent / "book" / "part" / "chapter.html").read_text()
    assert path.read_bytes() == before
    assert not path.with_name("left.txt").exists()


@pytest.mark.parametrize("part", ["_config.yml", "_toc.yml", "book"])
def test_outside_a_book_nothing_is_made(book, make, part, capsys):
    book.add("chapter", make.clean())
    (book.root / part).rename(book.root / "away")
    assert main(["--root", str(book.root), "build"]) == 1
    assert f"There is no {part}" in capsys.readouterr().err
    assert not (book.root / "_build").exists()


def test_two_at_once_do_not_destroy_each_other(book, make, capsys):
    book.add("chapter", make.clean())
    with staged(book.root, "run") as source:
        assert main(["--root", str(book.root), "run"]) == 1
        assert "Another `make run` is at work" in capsys.readouterr().err
        assert (source / "book" / "part" / "chapter.ipynb").exists()
        with staged(book.root, "book") as other:
            assert other != source
    with staged(book.root, "run") as again:
        assert again == source


def test_a_damaged_picture_is_named_with_its_chapter(book, make, capsys):
    notebook = make.clean()
    notebook.cells[3].outputs[0].data["image/png"] = "R0lGODlh"
    book.add("chapter", notebook)
    assert main(["--root", str(book.root), "build"]) == 1
    assert "book/part/chapter.ipynb, cell [3]: a picture is damaged (not a PNG image)" in capsys.readouterr().err
