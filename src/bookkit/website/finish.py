"""The last step of a build: what Sphinx wrote becomes what is published."""

from dataclasses import dataclass
from functools import partial

from bookkit.beside import beside
from bookkit.progress import progress
from bookkit.website import bundle, figures, frame, lighter, search
from bookkit.website import pages as built


@dataclass
class Finished:
    """What is told of a finished page to those who look at all pages."""

    title: str
    sections: list
    needs: bundle.Needs


def finish(html, root, store):
    """Change the pages of a built site in place.

    Args:
        html: the folder of the built pages.
        root: where ``_toc.yml`` of these pages lies.
        store: a folder that keeps what takes long for the next build.
    """
    pages = built.find(html, root)
    searched = [page for page in pages if page.address.startswith("book/")]
    numbered = [(page, searched.index(page) if page in searched else None) for page in pages]
    finished: dict[int, Finished] = {}
    # Pages are independent, and what takes long: the twins of their pictures, the first time, and reading them.
    with (
        beside(partial(_finish, html, store / "dark"), numbered) as ended,
        progress("Finishing the pages", len(pages), "pages") as advance,
    ):
        for number, finished[number] in ended:
            advance(len(finished), pages[number].address)
    told = [finished[number] for number in range(len(pages))]
    made = bundle.bundle(html, [each.needs for each in told])
    for page, each in zip(pages, told, strict=True):
        bundle.link(page, each.needs, made)
    titles = [[each.title, page.address, page.part] for page, each in zip(pages, told, strict=True) if page in searched]
    text = search.script(titles, [record for each in told for record in each.sections])
    (html / "_static" / search.NAME).write_text(text, encoding="utf-8")
    (html / "searchindex.js").unlink(missing_ok=True)


def _finish(html, store, numbered):
    """Finish one page, in a process of its own, and write it."""
    page, number = numbered
    sections = [] if number is None else list(search.records(page.article, number))
    title = page.title  # the first heading, as its author wrote it
    frame.mend(page)
    lighter.lighten(page.soup)
    figures.twin(html, page, store)
    needs = bundle.needs(page)
    page.write()
    return Finished(title, sections, needs)
