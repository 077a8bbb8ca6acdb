from textwrap import indent

import pytest

from bookkit.__main__ import main
from bookkit.chapters import chapters, longest_first, named, pages, strays
from bookkit.errors import BookError


def test_the_order_is_that_of_the_toc(book, make):
    second = book.add("b-second", make.clean())
    first = book.add("a-first", make.clean())
    assert chapters(book.root) == [second, first]


def test_sections_come_after_their_page(book, make):
    for name in ("one", "two", "three"):
        book.add(name, make.clean())
    (book.root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n- file: book/part/two\n  sections:\n"
        "  - file: book/part/one.ipynb\n- file: book/part/three\n"
    )
    assert [path.stem for path in chapters(book.root)] == ["two", "one", "three"]


def test_a_notebook_outside_the_toc_is_a_stray(book, make):
    path = book.add("known", make.clean())
    stray = path.with_name("unknown.ipynb")
    stray.write_bytes(path.read_bytes())
    assert strays(book.root) == [stray]


def test_what_jupyterlab_calls_untitled_is_no_stray(book, make):
    path = book.add("known", make.clean())
    for name in ("Untitled", "Untitled1"):
        path.with_name(f"{name}.ipynb").write_bytes(path.read_bytes())
    assert strays(book.root) == []


def test_pages_are_chapters_and_what_is_written_in_markdown(book, make):
    book.add("known", make.clean())
    assert [path.name for path in pages(book.root)] == ["index.md", "known.ipynb"]


@pytest.mark.parametrize(
    ("slip", "sentence"),
    [
        ("- book/part/known", "_toc.yml: book/part/known needs 'file:' before it"),
        ("- file: 12", "_toc.yml: 'file: 12' names no page"),
        ("- file: book/part/known\n- file: book/part/known.ipynb", "names book/part/known.ipynb twice"),
        ("book/part/known", "_toc.yml: what stands under 'chapters:' begins with '- '"),
    ],
)
def test_a_slip_in_the_toc_gets_a_sentence(book, make, slip, sentence):
    book.add("known", make.clean())
    (book.root / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\nchapters:\n{indent(slip, '  ')}\n")
    with pytest.raises(BookError) as error:
        chapters(book.root)
    assert sentence in str(error.value)


def test_a_page_that_does_not_exist_is_named(book, make):
    book.add("gone", make.clean()).unlink()
    with pytest.raises(BookError, match=r"book/part/gone, but no such page"):
        chapters(book.root)


def test_without_a_toc_the_sentence_says_where_to_stand(tmp_path):
    with pytest.raises(BookError, match="top of the book"):
        chapters(tmp_path)


@pytest.mark.parametrize(
    "name", ["book/part/meeting-up.ipynb", "book/part/meeting-up", "part/meeting-up", "meeting-up", "meeting-up.ipynb"]
)
def test_a_chapter_is_found_by_its_path_without_suffix_or_folders(book, make, monkeypatch, name):
    path = book.add("meeting-up", make.clean())
    book.add("splitting-up", make.clean())
    monkeypatch.chdir(book.root)
    assert named(book.root, [name]) == [path]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "book/part/meting-up.ipynb",
            "meting-up.ipynb: not a chapter of _toc.yml; did you mean book/part/meeting-up.ipynb?",
        ),
        ("meeting_up", "meeting_up: not a chapter of _toc.yml; did you mean book/part/meeting-up.ipynb?"),
        (
            "nowhere.ipynb",
            "nowhere.ipynb: not a chapter of _toc.yml; a chapter is named like book/part/meeting-up.ipynb",
        ),
        ("book/part/new", "book/part/new: not a chapter of _toc.yml; name it there"),
        *(
            (name, f"{shown}: not a chapter of _toc.yml; a chapter is named like book/part/meeting-up.ipynb")
            for name, shown in [(".", "."), ("..", ".."), ("/", "/"), (".ipynb", ".ipynb")]
        ),
    ],
)
def test_a_path_that_is_no_chapter_is_refused_with_a_hint(book, make, monkeypatch, name, sentence):
    path = book.add("meeting-up", make.clean())
    path.with_name("new.ipynb").write_bytes(path.read_bytes())
    monkeypatch.chdir(book.root)
    with pytest.raises(BookError) as error:
        named(book.root, [name])
    assert str(error.value).endswith(sentence)


def test_a_name_of_two_chapters_is_refused_with_both(book, make):
    path = book.add("meeting-up", make.clean())
    other = book.root / "book" / "other" / path.name
    other.parent.mkdir()
    other.write_bytes(path.read_bytes())
    (book.root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n- file: book/part/meeting-up\n- file: book/other/meeting-up\n"
    )
    with pytest.raises(BookError, match=r"did you mean book/part/meeting-up.ipynb or book/other/meeting-up.ipynb\?"):
        named(book.root, ["meeting-up"])


def test_the_chapters_verb_lists_those_that_are_named(book, make, capsys):
    for name in ("first", "second"):
        book.add(name, make.clean())
    assert main(["--root", str(book.root), "chapters", "second"]) == 0
    assert capsys.readouterr().out == "book/part/second.ipynb\n"


def test_a_book_without_notebooks_is_refused(book):
    (book.root / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    with pytest.raises(BookError, match="names no notebook"):
        named(book.root, [])


def test_what_launches_most_programs_comes_first_and_the_rest_stays_in_order(book, make):
    write = {
        "one": "1",
        "two": "run = ranklab.torchrun('a.py')",
        "three": "ranklab.torchrun('a.py')\n" * 2,
        "four": "2",
    }
    paths = [book.run(name, source) for name, source in write.items()]
    assert [path.stem for path in longest_first(paths)] == ["three", "two", "one", "four"]
