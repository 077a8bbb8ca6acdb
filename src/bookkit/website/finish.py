"""The last step of a build: what Sphinx wrote becomes what is published."""

from bookkit.progress import progress
from bookkit.website import bundle, figures, frame, search
from bookkit.website import pages as built


def finish(html, root, store):
    """Change the pages of a built site in place.

    Args:
        html: the folder of the built pages.
        root: where ``_toc.yml`` of these pages lies.
        store: a folder that keeps what takes long for the next build.
    """
    pages = built.read(html, root)
    _index(html, [page for page in pages if page.address.startswith("book/")])
    with progress("Finishing the pages", len(pages), "pages") as advance:
        for number, page in enumerate(pages):
            frame.mend(page)
            figures.twin(html, page, store / "dark")  # what takes long, the first time
            advance(number + 1, page.address)
    bundle.bundle(html, pages)
    for page in pages:
        page.write()
    (html / "searchindex.js").unlink(missing_ok=True)


def _index(html, pages):
    sections = [record for number, page in enumerate(pages) for record in search.records(page.article, number)]
    text = search.script([[page.title, page.address, page.part] for page in pages], sections)
    (html / "_static" / search.NAME).write_text(text, encoding="utf-8")
