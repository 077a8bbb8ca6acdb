"""A chapter on one printed page: its terms, a picture, what it found, and the lines to take home."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from bookkit.plain import LINK, anchor, entries
from bookkit.teaching.choose import Block, outputs
from bookkit.teaching.deck import asset
from bookkit.teaching.lessons import Lesson
from bookkit.teaching.words import bare, inline, paragraphs, plain, sentences

MOST_TERMS, DEFINITION = 6, 24
HALF, FULL, CODE = 50, 104, 110  # characters of a line of terms, of the summary, and of code
LINE, CODE_LINE, PAGE = 17, 13, 985  # pixels; the page without its frame, and with room for another font
PICTURE = 205
DRAWN = "Drawing"


def glossary(root: Path) -> dict[str, tuple[str, str]]:
    """Return each term of the glossary and its first sentence, in English, by the term in small letters."""
    found = {}
    for term, words in entries(root).items():
        spoken = bare(" ".join(re.sub(r"<span.*?</span>", "", words).split()))
        found[term.lower()] = term, re.split(r";|\. ", spoken)[0].rstrip(". ")
    return found


def terms(lesson: Lesson, known: dict[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the terms that a chapter links to the glossary, in their order, each with its sentence."""
    texts = "\n".join(cell.source for cell in lesson.notebook.cells if cell.cell_type == "markdown")
    anchors = {anchor(term): name for name, (term, _) in known.items()}
    named = dict.fromkeys(place for _, place in LINK.findall(texts))
    chosen = [anchors[place] for place in named if place in anchors]
    return [(known[name][0], sentences(known[name][1], DEFINITION)) for name in chosen[:MOST_TERMS]]


def picture(lesson: Lesson) -> Block | None:
    """Return the chapter's drawing, or its first figure."""
    found = []
    for cell in lesson.notebook.cells:
        if cell.cell_type == "code":
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            found += [Block("picture", image, alt) for image in outputs(cell)[1]]
    drawn = [block for block in found if block.alt.startswith(DRAWN)]
    return next(iter(drawn or found), None)


def take_home(lesson: Lesson, most: int) -> tuple[str, str]:
    """Return what the last core section says in words, and so many lines of the program that it shows."""
    section = next((each for each in lesson.core if each.title == "Take it home"), None)
    if section is None:
        return "", ""
    cells = [lesson.notebook.cells[place] for place in section.cells]
    texts = [text for cell in cells if cell.cell_type == "markdown" for text in paragraphs(cell.source)]
    printed = [outputs(cell)[0] or cell.source for cell in cells if cell.cell_type == "code"]
    program = next((text for text in printed if "import " in text or "def " in text or "dist." in text), "")
    return sentences(texts[0], 40) if texts else "", _own_lines(program, most)


def _own_lines(program: str, most: int) -> str:
    lines = re.sub(r'^\s*""".*?"""\s*', "", program, flags=re.S).split("\n")
    imports = [place for place, line in enumerate(lines) if line.startswith(("import ", "from "))]
    if len(lines) > most and imports:
        lines = lines[imports[-1] + 1 :]
    text = "\n".join(lines).strip("\n")
    text = re.sub(r"\n{2,}", "\n\n", text)
    kept: list[str] = []
    for line in text.split("\n"):
        if sum(1 + len(each) // CODE for each in [*kept, line]) > most:
            return "\n".join([*kept, "…"])
        kept.append(line)
    return "\n".join(kept)


def _lines_left(named: list[tuple[str, str]], summary: list[str]) -> int:
    """How many lines of code the page has room for, below its terms or its picture and its summary."""
    told = 40 + sum(LINE * (1 + (len(name) + len(text)) // HALF) + 4 for name, text in named)
    found = sum(LINE * (1 + len(item) // FULL) + 3 for item in summary)
    return max(8, (PAGE - 190 - max(told, PICTURE + 30) - found) // CODE_LINE)


def sheet(lesson: Lesson, root: Path) -> str:
    """Return the HTML of a chapter's sheet."""
    why = paragraphs(lesson.notebook.cells[0].source.partition("\n|")[0])
    named = terms(lesson, glossary(root))
    words = "".join(f"<div><dt>{escape(name)}:</dt> <dd>{inline(text)}.</dd></div>" for name, text in named)
    words = f"<div><h2>Terms</h2><dl>{words}</dl></div>" if words else ""
    found = lesson.bullets("Summary")
    drawn, (home, program) = picture(lesson), take_home(lesson, _lines_left(named, found))
    image = f'<img alt="{escape(drawn.alt)}" src="data:image/png;base64,{drawn.text}">' if drawn else ""
    summary = "".join(f"<li>{inline(item)}</li>" for item in found)
    title = escape(plain(lesson.title))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · a sheet of Rank by Rank</title><style>{asset("sheet.css")}</style></head>
<body><div class="sheet">
<h1>{inline(lesson.title)}</h1>
<p class="why">{inline(sentences(why[-1] if why else "", 45))}</p>
<div class="two">{words}<div><h2>Picture</h2>{image}</div></div>
<h2>What it showed</h2><ul>{summary}</ul>
<h2>Lines to take home</h2><p>{inline(home)}</p><pre>{escape(program)}</pre>
<p class="end">Rank by Rank · every claim is a cell that ran on real processes · text CC BY 4.0, code MIT</p>
</div></body></html>
"""
