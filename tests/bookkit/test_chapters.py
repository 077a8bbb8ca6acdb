import pytest

from bookkit.chapters import chapters, named, strays
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


def test_a_page_that_does_not_exist_is_named(book, make):
    book.add("gone", make.clean()).unlink()
    with pytest.raises(BookError, match=r"book/part/gone, but no such page"):
        chapters(book.root)


def test_without_a_toc_the_sentence_says_where_to_stand(tmp_path):
    with pytest.raises(BookError, match="top of the book"):
        chapters(tmp_path)


def test_a_path_that_is_no_chapter_is_refused(book, make):
    book.add("known", make.clean())
    with pytest.raises(BookError, match=r"nowhere.ipynb: not a chapter"):
        named(book.root, ["nowhere.ipynb"])


def test_a_book_without_notebooks_is_refused(book):
    (book.root / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    with pytest.raises(BookError, match="names no notebook"):
        named(book.root, [])
