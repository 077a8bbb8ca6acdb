"""One style sheet and one script for all pages, of the many that the theme and the extensions bring."""

import hashlib
import re
import shutil
from urllib.parse import urlsplit

from bookkit.website.stylesheets import prune, whole

STYLE, SCRIPT = "book.css", "book.js"
# The icon font and its script (rank-by-rank.css draws the icons), Sphinx's own search (search.js is ours), and the
# folds of sphinx_togglebutton (`details` elements need no script).
DROPPED = {
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
WORD = re.compile(r"[A-Za-z_][\w-]*")


def bundle(html, pages):
    """Replace the style sheets and scripts that all pages share by one of each; a page keeps those that are its own."""
    for page in pages:
        _drop(page)
    styles = _shared(pages, "link[rel=stylesheet][href]", "href")
    scripts = _shared(pages, "script[src]:not([type=module])", "src")
    static = html / "_static"
    joined = [_runnable(html / name) for name in scripts]
    names = _names(pages) | {word for name in scripts if "bootstrap" not in name for word in _words(html / name)}
    css = "\n".join(prune(whole(html / name, static), names) for name in styles)
    _link(pages, styles, "link", "href", _store(static / STYLE, css))
    _link(pages, scripts, "script", "src", _store(static / SCRIPT, ";\n".join(joined)))
    _sweep(html, [*styles, *scripts])


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


def _shared(pages, selector, attribute):
    """The files that every page names, in the order in which a browser uses them: deferred scripts come last."""
    named = [[element for element in page.soup.select(selector) if _file(element[attribute])] for page in pages]
    sets = [{_file(element[attribute]) for element in elements} for elements in named]
    first = sorted(named[0], key=lambda element: element.has_attr("defer"))
    names = dict.fromkeys(_file(element[attribute]) for element in first)
    return [name for name in names if name in set.intersection(*sets)]


def _names(pages):
    """Every class and every id of every page."""
    found = set()
    for page in pages:
        for element in page.soup.find_all(True):
            found.update(element.get("class", ()))
            found.add(element.get("id"))
    return found


def _words(path):
    return WORD.findall(path.read_text(encoding="utf-8"))


def _runnable(path):
    return re.sub(r"^//# sourceMappingURL=.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)


def _store(path, text):
    path.write_text(text, encoding="utf-8")
    return f"_static/{path.name}?v={hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _link(pages, replaced, name, attribute, address):
    for page in pages:
        elements = [e for e in page.soup.select(f"{name}[{attribute}]") if _file(e[attribute]) in replaced]
        made = page.soup.new_tag(name, attrs={attribute: page.up(address)})
        made["rel" if name == "link" else "defer"] = "stylesheet" if name == "link" else ""
        elements[0].insert_before(made)
        for element in elements:
            element.decompose()


def _sweep(html, joined):
    """Remove what nothing loads any more; it would only be uploaded."""
    for name in joined:
        (html / name).unlink()
    for path in [*html.rglob("*.map"), *(path for path in html.rglob("*.[cj]s*") if path.name in DROPPED)]:
        path.unlink()
    shutil.rmtree(html / "_static" / "vendor" / "fontawesome", ignore_errors=True)
    shutil.rmtree(html / "_static" / "locales", ignore_errors=True)
