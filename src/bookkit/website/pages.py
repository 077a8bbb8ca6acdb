"""The built pages as trees of elements: found, read when they are looked at, and written back."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml
from bs4 import BeautifulSoup


@dataclass
class Page:
    """One built page.

    Attributes:
        path: where it lies.
        address: the same from the top of the site, with slashes.
        part: the caption of its part of the book, or "".
    """

    path: Path
    address: str
    part: str = ""

    @cached_property
    def soup(self):
        """Its elements."""
        return BeautifulSoup(self.path.read_text(encoding="utf-8"), "html.parser")

    @property
    def article(self):
        """The element with what the author wrote, or None on a page without."""
        return self.soup.select_one("article.bd-article")

    @property
    def title(self):
        """The words of the first heading, without the mark that links to it."""
        heading = self.soup.select_one("article h1")
        return "".join(heading.find_all(string=True, recursive=False)).strip() if heading else ""

    def up(self, address):
        """A link from this page to a file of the site, which is named from the top."""
        return "../" * self.address.count("/") + address

    def write(self):
        """Store the elements."""
        self.path.write_text(self.soup.decode(formatter="minimal"), encoding="utf-8")


def find(html, root):
    """All pages of a built site: those of the book first, in its order, then the others.

    Args:
        html: the folder of the built pages.
        root: where ``_toc.yml`` lies.
    """
    parts = _parts(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8")))
    files = [path.relative_to(html).with_suffix("") for path in html.rglob("*.html")]
    rest = sorted(str(file) for file in files if not file.parts[0].startswith("_"))
    found = []
    for name in [*parts, *(name for name in rest if name not in parts)]:
        path = html / f"{name}.html"
        if path.is_file() and name != "index":  # index.html only leads to the first page
            found.append(Page(path, f"{name}.html", parts.get(name, "")))
    return found


def _parts(toc):
    """The caption of every page that ``_toc.yml`` names, in reading order."""
    captions = {toc["root"]: ""}
    for part in [toc, *toc.get("parts", [])]:
        captions |= {chapter["file"]: part.get("caption", "") for chapter in part.get("chapters", [])}
    return captions
