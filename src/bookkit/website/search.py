"""What a search looks through: every section of the book as a record, in a script that a page loads on demand.

Our own index and not Pagefind's, because a browser refuses to fetch a file from a page that was opened from a disk,
and Pagefind fetches its index; a script element is not refused. The whole text is searched, so that a word, a line
from a terminal and 梯度桶 are found alike, with no list of stems or of Chinese words.
"""

import json
import re

from bs4 import Tag

NAME = "search-data.js"
HEADINGS = re.compile(r"h[1-6]$")
# The smallest things that hold a line of text. A row of a table is one line.
LINES = ("p", "li", "dt", "dd", "tr", "pre", "figcaption", "h4", "h5", "h6")
MINUTES = re.compile(r"(?:Core|More) · \d+ minutes$")


def records(article, page):
    """Every section, term and documented name of a page, in the order of the page.

    Args:
        article: the ``<article>`` of a built page.
        page: the number of the page, which each record repeats.

    Returns:
        Lists of page, anchor, kind, heading, prose and code. Kind 1 is the page itself, 2 and above the level of a
        heading, 0 a term of the glossary. Lines of prose and of code end with a newline.
    """
    found = []
    for section in article.find_all("section"):
        heading = section.find(HEADINGS, recursive=False)
        if heading is None:
            continue
        prose, code = _text(section)
        found.append([page, section.get("id", ""), int(heading.name[1]), _words(heading), prose, code])
    for term in article.select("dl.glossary > dt, dl.py > dt.sig[id]"):
        meaning = term.find_next_sibling("dd")
        own = [line for line in meaning.find_all("p", recursive=False)] if meaning else []
        name = term["id"].removeprefix("ranklab.") if "sig" in term.get("class", ()) else _words(term)
        found.append([page, term.get("id", ""), 0, name, "\n".join(map(_words, own)), ""])
    return found


def script(pages, sections):
    """The index as JavaScript.

    Args:
        pages: a list of title, address from the top of the site, and part.
        sections: the records of all pages.
    """
    data = json.dumps({"pages": pages, "sections": sections}, ensure_ascii=False, separators=(",", ":"))
    return f"window.rankByRankSearch={data};\n"


def _text(section):
    """The lines of prose and of code that stand in a section and in no smaller one."""
    prose, code = [], []
    for line in _lines(section):
        if line.name == "pre":
            code.append(line.get_text().strip("\n"))
        else:
            prose.append("" if MINUTES.match(words := _words(line)) else words)
    return "\n".join(filter(None, prose)), "\n".join(filter(None, code))


def _lines(block):
    for child in block.find_all(True, recursive=False):
        # Folded cells guard the page or draw its figures; nobody looks for them.
        if child.name in ("section", "script", "style", "h1", "h2", "h3") or "hide" in child.get("class", ()):
            continue
        if "glossary" in child.get("class", ()) or "py" in child.get("class", ()):
            continue  # records of their own
        if child.name in LINES and (child.name == "tr" or child.find(LINES) is None):
            yield child
        else:
            yield from _lines(child)


def _words(block: Tag) -> str:
    cells = block.find_all(["td", "th"]) if block.name == "tr" else [block]
    return " · ".join(filter(None, (" ".join("".join(_strings(cell)).split()) for cell in cells)))


def _strings(block):
    return (text for text in block.find_all(string=True) if "headerlink" not in text.parent.get("class", ()))
