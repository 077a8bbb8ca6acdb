"""One deck of slides: a page of HTML with everything in it. It needs no network, no server and, to be read, no script.

Why not reveal.js through nbconvert: that template fetches scripts and fonts from cdnjs.cloudflare.com and unpkg.com;
reveal.js 6.0.2 with a theme is 750 kB to vendor, for pages that need eight keys. A deck is as large as its pictures.
"""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from bookkit.teaching.choose import Block, Slide
from bookkit.teaching.words import inline, plain
from ranklab.palette import label_color, rank_color

STYLE = "a11y-high-contrast-light"  # the one of the pages
RANK = re.compile(r"^(rank (\d+)|ranks [\d, –]+)(?=\s)", re.M)


def asset(name: str) -> str:
    """Return a style sheet or a script that lies beside this module."""
    return (files("bookkit.teaching") / name).read_text(encoding="utf-8")


def deck(title: str, made: list[Slide]) -> str:
    """Return the HTML of a deck.

    Args:
        title: the chapter's.
        made: its slides.
    """
    pages = "\n".join(_page(slide, number, len(made)) for number, slide in enumerate(made, 1))
    css = HtmlFormatter(style=_style()).get_style_defs("pre.code")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(plain(title))} · slides of Rank by Rank</title>
<style>{asset("deck.css")}{css}</style></head>
<body><main aria-label="Slides">
{pages}
</main>
<script>{asset("deck.js")}</script></body></html>
"""


def _style() -> str:
    try:
        HtmlFormatter(style=STYLE)
    except ValueError:  # it comes with the theme of the site
        return "default"
    return STYLE


def _page(slide: Slide, number: int, of: int) -> str:
    blocks = "\n".join(_block(block) for block in slide.blocks)
    notes = "".join(f"<p>{inline(note)}</p>" for note in slide.notes)
    level = "h1" if slide.kind == "title" else "h2"
    return f"""<section class="slide {slide.kind}" id="{number}" aria-label="Slide {number} of {of}">
<{level}>{inline(slide.heading)}</{level}>
<div class="body">{blocks}</div>
<footer>Rank by Rank <span>{number} / {of}</span></footer>
</section>
<aside class="notes" aria-label="Notes of slide {number}">{notes}</aside>"""


def _block(block: Block) -> str:
    if block.kind == "code":
        coloured = highlight(block.text, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip()
        return f'<pre class="code">{coloured}</pre>'
    if block.kind == "output":
        return f'<pre class="output">{RANK.sub(_coloured, escape(block.text))}</pre>'
    if block.kind == "picture":
        return f'<img alt="{escape(block.alt)}" src="data:image/png;base64,{block.text}">'
    items = "".join(f"<li>{inline(item)}</li>" for item in block.items)
    if block.kind == "question":
        return f'<p class="question">{inline(block.text)}</p><ul class="offered">{items}</ul>'
    if block.kind == "list":
        return f"<ul>{items}</ul>"
    return f'<p class="{block.kind}">{inline(block.text)}</p>'


def _coloured(match: re.Match[str]) -> str:
    if match[2] is None:
        return f"<b>{match[1]}</b>"
    rank = int(match[2])
    return f'<b class="rank" style="background:{rank_color(rank)};color:{label_color(rank)}">{match[1]}</b>'
