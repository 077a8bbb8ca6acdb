"""Elements that change nothing a reader sees, taken out: the longest page is left with half as many."""

import re

from bs4 import NavigableString

# A browser breaks no line within such a word, so it needs no element of its own that says so.
UNBROKEN = re.compile(r"[\w.,:;()\[\]'\"=*<>+#@%$&~^`]+", re.ASCII)


def lighten(soup):
    """Change the elements of one page."""
    _words(soup)
    _empty(soup)
    _items(soup)
    _contents(soup)


def _words(soup):
    """Sphinx wraps each word of inline code, so that its lines break between words alone."""
    for code in soup.select("code.literal"):
        for word in code.select("span.pre"):
            if UNBROKEN.fullmatch(word.get_text()):
                word.unwrap()
        code.smooth()


def _empty(soup):
    """Pygments begins each listing with an element that holds nothing."""
    for span in soup.select("pre > span:first-child:empty"):
        if not span.attrs:
            span.decompose()


def _items(soup):
    """The one paragraph of an item in a list of short ones."""
    for item in soup.select("ol.simple > li, ul.simple > li"):
        inside = [child for child in item.contents if not isinstance(child, NavigableString) or child.strip()]
        if len(inside) == 1 and inside[0].name == "p" and not inside[0].attrs:
            inside[0].unwrap()


def _contents(soup):
    """Where a field finds an entry, the contents beside the page have the groups alone."""
    if soup.select_one("p.rl-find"):
        for entries in soup.select("nav.page-toc ul ul"):
            entries.decompose()
