"""A chapter as a lesson: its sections with their minutes, what it asks the room, and its exercises with their stars."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from bookkit.errors import BookError
from bookkit.notebook import read
from bookkit.voice import MINUTES

HEADING = re.compile(r"^(##+) (.+)$", re.M)
QUESTION = re.compile(r"\*\*([^*]+[?.])\*\*\s*(\(A\).*)")
OFFERED = re.compile(r"\(([A-D])\)\s*(.*?)(?=\s*\([A-D]\)|$)")
EXERCISE = re.compile(r"\{exercise-start\}[^:]*:label: *(\S+)")
STARS = re.compile(r"^\*\*(★+) (.+?)\.?\*\*", re.M)


@dataclass
class Question:
    """A question that a room votes on: its words, and the answers that are offered, by letter."""

    text: str
    offered: dict[str, str]


@dataclass
class Section:
    """A part of a chapter with minutes of its own.

    Attributes:
        title: its heading, as it stands on the page.
        kind: Core or More.
        minutes: what the page states.
        headings: its own heading and those below it that have no minutes of their own.
        cells: the places of its cells in the notebook.
    """

    title: str
    kind: str
    minutes: int
    headings: list[str] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


@dataclass
class Exercise:
    """An exercise: its label, its title and how many stars it has."""

    label: str
    title: str
    stars: str


class Lesson:
    """A chapter as somebody teaches it.

    Args:
        path: the notebook.

    Attributes:
        title: the chapter's.
        sections: those with minutes, in their order.
        exercises: in their order.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.notebook = Path(path), read(path)
        cells = self.notebook.cells
        self.title = cells[0].source.partition("\n")[0].removeprefix("# ").strip()
        self.sections: list[Section] = []
        self.exercises: list[Exercise] = []
        for place, cell in enumerate(cells):
            if cell.cell_type == "markdown":
                self._read(cell.source)
            if self.sections:
                self.sections[-1].cells.append(place)

    def _read(self, text: str) -> None:
        headings, minutes = HEADING.findall(text), MINUTES.search(text)
        if headings and (minutes or len(headings[0][0]) == 2):
            # A section without minutes, such as the summary, is a part of no lesson and ends the one before it.
            kind, number = (minutes[1], int(minutes[2])) if minutes else ("", 0)
            self.sections.append(Section(headings[0][1].strip(), kind, number))
        if not self.sections:
            return
        self.sections[-1].headings += [title.strip() for _, title in headings]
        plain = " ".join(text.split("\n"))
        for words, offered in QUESTION.findall(re.sub(r"\n\n+", "\n", text)):
            self.sections[-1].questions.append(Question(words, dict(OFFERED.findall(offered))))
        if label := EXERCISE.search(plain):
            title = STARS.search(text)
            stars, name = (title[1], title[2]) if title else ("", label[1])
            self.exercises.append(Exercise(label[1], name, stars))

    @property
    def core(self) -> list[Section]:
        """The sections that make the lesson."""
        return [section for section in self.sections if section.kind == "Core"]

    @property
    def headings(self) -> list[str]:
        """All headings of the chapter, in their order."""
        cells = [cell.source for cell in self.notebook.cells if cell.cell_type == "markdown"]
        return [title.strip() for source in cells for _, title in HEADING.findall(source)]

    def bullets(self, title: str) -> list[str]:
        """Return the items of the list below a heading."""
        cells = [cell.source for cell in self.notebook.cells if cell.cell_type == "markdown"]
        found = [source.split(f"## {title}\n", 1)[1] for source in cells if f"## {title}\n" in source]
        below = re.split(r"^#", found[0], flags=re.M)[0] if found else ""
        return [" ".join(item.split()) for item in re.findall(r"^[-*] (.+?)(?=\n[-*] |\n\n|\Z)", below, re.M | re.S)]

    def section(self, title: str) -> Section:
        """Return the section of that title.

        Raises:
            BookError: there is none with minutes.
        """
        for section in self.sections:
            if section.minutes and section.title == title:
                return section
        known = ", ".join(section.title for section in self.sections if section.minutes)
        raise BookError(f"{self.path.stem} has no section {title!r} with minutes; it has {known}")

    def exercise(self, label: str) -> Exercise:
        """Return the exercise of that label.

        Raises:
            BookError: there is none.
        """
        for exercise in self.exercises:
            if exercise.label == label:
                return exercise
        known = ", ".join(exercise.label for exercise in self.exercises)
        raise BookError(f"{self.path.stem} has no exercise {label}; it has {known}")


def anchor(title: str) -> str:
    """Return the name under which a heading can be linked, as GitHub and MyST make it."""
    kept = re.sub(r"[^\w\- ]", "", title.lower())
    return kept.strip().replace(" ", "-")
