"""The instructor's notes of a chapter, as the pages of book/teaching/notes have them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from bookkit.teaching.words import bare

BELIEVED, ASKED, TIME, DRAWING = "What people believe", "What to ask", "Where time goes", "The drawing for the wall"
ITEM = re.compile(r"^(?:\d+\.|-) \[([^\]]+)\]\([^)]*\)\. (.+)$", re.M)
PART = re.compile(r"^\*\*([^*\n]+)\*\*(.*?)(?=^\*\*|\Z)", re.M | re.S)


@dataclass
class Notes:
    """What somebody who has taught a chapter tells the next.

    Attributes:
        believed: a section's title and what people believe there, each with what the page shows.
        asked: a section's title and a question with its answer.
        time: where cells take time.
        drawing: the picture for the wall.
        text: all of it, as Markdown.
    """

    believed: list[tuple[str, str]] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    time: str = ""
    drawing: str = ""
    text: str = ""

    def at(self, title: str) -> list[str]:
        """Return what the notes have for a section."""
        believed = [f"People believe: {words}" for section, words in self.believed if section == title]
        return believed + [f"Ask: {words}" for section, words in self.asked if section == title]


def page_of(root: Path, chapter: Path) -> Path:
    """Return the page that has a chapter's notes: one page a part."""
    return root / "book" / "teaching" / "notes" / f"{chapter.parent.name}.md"


def notes(root: Path, chapter: Path, title: str) -> Notes:
    """Return the notes of the chapter of that title; empty ones where nobody has written them yet."""
    page = page_of(root, chapter)
    written = page.read_text(encoding="utf-8") if page.exists() else ""
    own = next((part for part in written.split("\n## ") if part.split("\n")[0].strip() == title), "")
    parts = {name: text.strip() for name, text in PART.findall(own)}

    def items(name: str) -> list[tuple[str, str]]:
        return [(section, bare(words)) for section, words in ITEM.findall(parts.get(name, ""))]

    return Notes(items(BELIEVED), items(ASKED), bare(parts.get(TIME, "")), bare(parts.get(DRAWING, "")), own)
