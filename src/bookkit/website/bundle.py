"""One style sheet and one script for all pages, of the many that the theme and the extensions bring."""

import hashlib
import re
import shutil
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from bookkit.website.stylesheets import prune, whole

STYLE, SCRIPT = "book.css", "book.js"
# The icon font and its script (rank-by-rank.css draws the icons), Bootstrap's script, which is half of all (site.js
# opens the one menu of a page), Sphinx's own search (search.js is ours), and the folds of sphinx_togglebutton
# (`details` elements need no script).
DROPPED = {
    "bootstrap.js",
    "fontawesome.js",
    "language_data.js",
    "searchindex.js",
    "searchtools.js",
    "sphinx_highlight.js",
    "togglebutton.css",
    "togglebutton.js",
}
# Settings of what is dropped, and of nothing else.
SETTINGS = re.compile(r"^\s*(?:let toggle|var togglebutton|DOCUMENTATION_OPTIONS\.)")
# The theme measures every box of a page as soon as it is there, and so lays out what nobody sees yet. site.js has a way
# that waits for the browser.
MEASURED = re.compile(r"""document\.querySelectorAll\(\["pre",[^\]]*\]\.join\(", "\)\)""")
# Without it sphinx-copybutton waits for a quarter of a second: then its buttons do not hold up the first picture.
LAST = "clipboard.min.js"
WORD = re.compile(r"[A-Za-z_][\w-]*")


class Loaded(NamedTuple):
    """An element that loads a file: which, whether a browser waits with it, and how it is written."""

    file: str
    late: bool
    text: str


@dataclass
class Needs:
    """What one page loads, and every class and id that it has."""

    styles: list[Loaded]
    scripts: list[Loaded]
    names: set[str]


class Bundle(NamedTuple):
    """One file for many: which it replaces, its address from the top of the site, and the element that loads it."""

    files: list[str]
    address: str
    element: str


def needs(page):
    """Drop from a page what nobody needs, and return what it needs."""
    _drop(page)
    return Needs(
        _loaded(page, "link[rel=stylesheet][href]", "href"),
        _loaded(page, "script[src]:not([type=module])", "src"),
        _names(page),
    )


def bundle(html, needed):
    """Make one style sheet and one script of those that all pages share, and return both.

    Args:
        html: the folder of the built pages.
        needed: what each page needs; its elements are written to its file by now.
    """
    styles = _shared([each.styles for each in needed])
    scripts = sorted(_shared([each.scripts for each in needed]), key=lambda name: name.endswith(LAST))
    static = html / "_static"
    joined = [_runnable(html / name) for name in scripts]
    names = set().union(*(each.names for each in needed))
    names.update(word for name in scripts for word in _words(html / name))
    css = "\n".join(prune(whole(html / name, static), names) for name in styles)
    made = [
        Bundle(styles, _store(static / STYLE, css), '<link href="{}" rel="stylesheet"/>'),
        Bundle(scripts, _store(static / SCRIPT, ";\n".join(joined)), '<script defer="" src="{}"></script>'),
    ]
    _sweep(html, [*styles, *scripts])
    return made


def link(page, needed, bundles):
    """Let the file of a page load the bundles, and no more what they replace; what is the page's own stays."""
    text = page.path.read_text(encoding="utf-8")
    for loaded, made in zip((needed.styles, needed.scripts), bundles, strict=True):
        first, *rest = [each.text for each in loaded if each.file in made.files]
        text = text.replace(first, made.element.format(page.up(made.address)), 1)
        for element in rest:
            text = text.replace(element, "", 1)
    page.path.write_text(text, encoding="utf-8")


def _drop(page):
    for element in page.soup.select("link[href], script[src]"):
        if urlsplit(element.get("href") or element.get("src")).path.split("/")[-1] in DROPPED:
            element.decompose()
    for element in page.soup.select("link[rel=preload], script:not([src])"):
        if element.name == "link" or SETTINGS.match(element.get_text()):
            element.decompose()


def _file(address):
    """A link of a page as a path from the top of the site, or None for another host's."""
    parts = urlsplit(address)
    return None if parts.scheme or parts.netloc else re.sub(r"^(?:\.\./|\./)+", "", parts.path)


def _loaded(page, selector, attribute):
    elements = [(element, _file(element[attribute])) for element in page.soup.select(selector)]
    return [Loaded(file, element.has_attr("defer"), str(element)) for element, file in elements if file]


def _shared(pages):
    """The files that every page names, in the order in which a browser uses them: deferred scripts come last."""
    sets = [{each.file for each in loaded} for loaded in pages]
    names = dict.fromkeys(each.file for each in sorted(pages[0], key=lambda each: each.late))
    return [name for name in names if name in set.intersection(*sets)]


def _names(page):
    """Every class and every id of a page."""
    found = set()
    for element in page.soup.find_all(True):
        found.update(element.get("class", ()))
        found.add(element.get("id"))
    return found


def _words(path):
    return WORD.findall(path.read_text(encoding="utf-8"))


def _runnable(path):
    text = MEASURED.sub("[]", path.read_text(encoding="utf-8"))
    return re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.MULTILINE)


def _store(path, text):
    path.write_text(text, encoding="utf-8")
    return f"_static/{path.name}?v={hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _sweep(html, joined):
    """Remove what nothing loads any more; it would only be uploaded."""
    for name in joined:
        (html / name).unlink()
    for path in [*html.rglob("*.map"), *(path for path in html.rglob("*.[cj]s*") if path.name in DROPPED)]:
        path.unlink()
    shutil.rmtree(html / "_static" / "vendor" / "fontawesome", ignore_errors=True)
    shutil.rmtree(html / "_static" / "locales", ignore_errors=True)
