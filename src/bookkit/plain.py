"""A Sphinx extension: chapters are written plainly, so that every program shows them, and become MyST for the site.

JupyterLab, VS Code, nbconvert and code hosts know Markdown, and show a role or a directive of Sphinx as raw text. So a
notebook has instead

- a link to the glossary, ``[ranks](../glossary.md#term-rank)``, for a term of it;
- a quotation that begins with bold words, ``> **Start here if you came late.** Run …``, for a box with that title;
- a comment, ``<!-- site … -->``, around lines that only the site needs: where exercises and solutions begin and end;
- ``**Solution.**`` below such a comment: the site has a title of its own there.
"""

import json
import re
from pathlib import Path

ENTRY = re.compile(r"^(\S[^\n]*)\n  (.+?)(?=\n\n|\n```)", re.M | re.S)
LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)?glossary\.md#(term-[\w-]+)\)")
BOX = re.compile(r"^> \*\*([^*\n]+)\.\*\* ?((?:.*\n?)(?:^>.*\n?)*)", re.M)
SITE = re.compile(r"^<!-- site\n(.*?)\n-->$", re.M | re.S)
TITLE = re.compile(r"(?<=^-->\n\n)\*\*Solution\.\*\* ?", re.M)


def anchor(term):
    """The place of a term on the page of the glossary, as Sphinx names it: term-local-rank."""
    return "term-" + re.sub(r"\W+", "-", term).strip("-")


def entries(root):
    """Each term of the glossary, with the Markdown that explains it.

    Args:
        root: the folder in which ``book`` stands.
    """
    return dict(ENTRY.findall((Path(root) / "book" / "glossary.md").read_text(encoding="utf-8")))


def for_the_site(text, terms):
    """The Markdown of a text cell, with the roles and directives that Sphinx knows.

    Args:
        text: of the cell.
        terms: of the glossary, by their anchors; what leads to another place of it stays a link, and Sphinx says so.
    """

    def role(link):
        words, term = link[1], terms.get(link[2])
        if term is None:
            return link[0]
        return f"{{term}}`{words}`" if words == term else f"{{term}}`{words} <{term}>`"

    def box(quotation):
        inside = re.sub(r"^> ?", "", quotation[2], flags=re.M).rstrip("\n")
        return f":::{{admonition}} {quotation[1]}\n{inside}\n:::\n"

    return SITE.sub(r"\1", TITLE.sub("", BOX.sub(box, LINK.sub(role, text))))


def _on_source(app, docname, source):
    terms = {anchor(term): term for term in entries(app.srcdir)}
    if not app.env.doc2path(docname).endswith(".ipynb"):  # the plans repeat the questions of chapters
        source[0] = for_the_site(source[0], terms)
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = for_the_site("".join(cell["source"]), terms)
    source[0] = json.dumps(notebook)


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", _on_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
