"""The text of a page for a screen or a sheet: HTML without roles, links and footnotes, or plain words."""

from __future__ import annotations

import html
import re

from markdown_it import MarkdownIt

from bookkit.voice import FOOTNOTE, MINUTES

ROLE = re.compile(r"\{\w+\}`(?:([^`<]+?)\s*<[^`>]+>|([^`]+))`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
MARK = re.compile(r"\[\^[\w-]+\]")
COMMENT = re.compile(r"<!--.*?-->", re.S)
HEADINGS = re.compile(r"^#+ .*$", re.M)
LABEL = re.compile(r"^\([\w-]+\)=$", re.M)
SENTENCE = re.compile(r"(?<=[.?:])\s+(?=[A-Z`*(0-9])")
MARKDOWN = MarkdownIt("commonmark").enable("table")


def bare(text: str) -> str:
    """Return Markdown without comments, headings, minutes, roles, links and footnotes."""
    text = COMMENT.sub("", text)
    text = MINUTES.sub("", HEADINGS.sub("", FOOTNOTE.sub("", text)))
    text = ROLE.sub(lambda match: match[1] or match[2], LABEL.sub("", text))
    return MARK.sub("", LINK.sub(r"\1", text)).strip()


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text cell, without what is no paragraph: boxes, tables, code and pictures."""
    text = re.sub(r"^(`{3,}|:{3,}).*?^\1`*:*\s*$", "", text, flags=re.M | re.S)
    found = [" ".join(part.split("\n")).strip() for part in re.split(r"\n\s*\n", bare(text))]
    return [part for part in found if part and not part.startswith(("|", "```", ":::", ">"))]


def sentences(text: str, most: int) -> str:
    """Return the first sentences of a paragraph, of so many words at most; the first one always."""
    kept: list[str] = []
    for sentence in SENTENCE.split(text):
        if kept and len(" ".join([*kept, sentence]).split()) > most:
            break
        kept.append(sentence)
    if len(kept) > 1 and kept[-1].endswith(":"):
        kept.pop()  # what it announces is not here
    return " ".join(kept)


def last_sentences(text: str, most: int) -> str:
    """Return the last sentences of a paragraph, of so many words at most; the last one always."""
    kept: list[str] = []
    for sentence in reversed(SENTENCE.split(text)):
        if kept and len(" ".join([sentence, *kept]).split()) > most:
            break
        kept.insert(0, sentence)
    return " ".join(kept)


def inline(text: str) -> str:
    """Return one line of Markdown as HTML."""
    return MARKDOWN.renderInline(bare(text)).replace("\n", " ")


def plain(text: str) -> str:
    """Return Markdown as plain words, for a title or an alternative text."""
    return html.unescape(re.sub(r"<[^>]+>", "", inline(text)))
