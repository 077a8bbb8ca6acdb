"""``python -m bookkit.teaching.plans`` writes the plans of book/teaching from plans.yml and the minutes of the pages.

A plan names chapters, sections and exercises; minutes, clock and questions come from the notebooks. Which questions of
a section the room votes on (``ask:``), and where nobody types (``run:``), a plan says itself. One that does not add up
to what it promises, or names what the pages do not have, is not written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from bookkit.errors import BookError, count
from bookkit.teaching.lessons import Lesson, Section, anchor
from bookkit.teaching.words import plain

FOLDER = Path("book/teaching")
SOURCE = FOLDER / "plans.yml"
LEAST_EXERCISE = 5  # minutes; in fewer nobody solves anything
WRITTEN = "% Written by `python -m bookkit.teaching.plans` from plans.yml and the chapters; do not edit."


class Part:
    """A day of a plan, or the whole of a short one: its blocks, with their minutes.

    Args:
        told: the entry of plans.yml.
        lessons: finds a lesson by ``part/chapter``.
    """

    def __init__(self, told, lessons) -> None:
        self.heading, self.starts, self.minutes = told["heading"], told.get("starts", "0:00"), told["minutes"]
        self.blocks = [Block(each, lessons) for each in told["blocks"]]
        open_ended = [block for block in self.blocks if block.minutes is None]
        left = self.minutes - sum(block.minutes or 0 for block in self.blocks)
        if len(open_ended) == 1 and left >= LEAST_EXERCISE:
            open_ended[0].minutes = left
        elif open_ended or left:
            raise BookError(f"{self.heading}: {self.minutes} minutes are promised, and {left} are left")

    def text(self) -> Iterator[str]:
        """Yield the part's Markdown."""
        yield f"## {self.heading}"
        hours, minutes = map(int, self.starts.split(":"))
        now = 60 * hours + minutes
        for block in self.blocks:
            yield block.text(now)
            now += block.minutes or 0


class Block:
    """A lesson, an exercise, a break or a talk."""

    def __init__(self, told, lessons) -> None:
        self.told, self.rows = told, []
        stated = told.get("minutes")
        self.minutes: int | None = None if stated == "rest" else stated
        if "chapter" in told:
            self.lesson = lessons(told["chapter"])
            core = [section.title for section in self.lesson.core]
            names = told.get("sections", core)
            if wrong := [name for name in names if name not in core]:
                raise BookError(f"{told['chapter']}: not core: {', '.join(wrong)}")
            self.rows = [self.lesson.section(name) for name in names]
            self.minutes = sum(section.minutes for section in self.rows)
            self.late, self.run = told.get("late", {}), told.get("run", [])
            for what, titles in (("drop", self.late), ("run", self.run), ("ask", told.get("ask", {}))):
                if unknown := set(titles) - set(names):
                    raise BookError(f"{told['chapter']}: what to {what} is not taught: {', '.join(sorted(unknown))}")
            self.ask = self._asked(told.get("ask", {}))
        elif "of" in told:
            self.lesson = lessons(told["of"])
        if "more" in told:
            self.minutes = self.lesson.section(told["more"]).minutes

    def _asked(self, told: dict[str, str | list[str]]) -> dict[str, list[str]]:
        """Return the questions of each section that is taught: those that the plan names, or else the usual ones."""
        chosen = {section.title: usual(section) for section in self.rows}
        for title, named in told.items():
            chosen[title] = [named] if isinstance(named, str) else list(named)
            own = [question.text for question in self.lesson.section(title).questions]
            if missing := [words for words in chosen[title] if words not in own]:
                known = "; ".join(f"{each.title}: {' '.join(q.text for q in each.questions)}" for each in self.rows)
                raise BookError(f"{self.told['chapter']}: {title!r} does not ask {missing[0]!r}; asked are {known}")
        return chosen

    def text(self, now: int) -> str:
        """Return the block's Markdown, beginning at this minute of the day."""
        told, length = self.told, count(self.minutes or 0, "minute")
        if "chapter" in told:
            return self._taught(now, length)
        if "exercise" in told:
            exercise = self.lesson.exercise(told["exercise"])
            what = f"Exercise {exercise.stars}: {{ref}}`{plain(exercise.title)} <{exercise.label}>`"
        elif "more" in told:
            what = f"[{told['more']}]({page(told['of'])}#{anchor(told['more'])}) (a *more* section)"
        else:
            what = told["say"]
        words = f" {told['do']}" if "do" in told else ""
        return f"**{clock(now)}** · {length} · {what}.{words}"

    def _taught(self, now: int, length: str) -> str:
        chapter = self.told["chapter"]
        notes = f"[notes](notes/{chapter.split('/')[0]}.md#{anchor(self.lesson.title)})"
        lines = [f"### {clock(now)} · {self.lesson.title}", "", f"{length} · [page]({page(chapter)}) · {notes}", ""]
        if self.run:
            lines += [f"Nobody types in {listed(self.run)}: everybody runs those cells from the page.", ""]
        if "do" in self.told:
            lines += [self.told["do"], ""]
        lines += ["| Section | Minutes | Ask the room | When you are late |", "|---|---|---|---|"]
        for section in self.rows:
            link = f"[{section.title}]({page(chapter)}#{anchor(section.title)})"
            row = [f"{clock(now)} · {link}", str(section.minutes), printed(self.ask[section.title])]
            row.append(self.late.get(section.title, ""))
            lines.append("| " + " | ".join(row) + " |")
            now += section.minutes
        return "\n".join(lines)


def page(chapter: str) -> str:
    """Return the link from a plan to a chapter."""
    return f"../{chapter}.ipynb"


def clock(minutes: int) -> str:
    """Return minutes since midnight, or since the beginning, as 9:05."""
    return f"{minutes // 60}:{minutes % 60:02}"


def usual(section: Section) -> list[str]:
    """Return the questions of a section that the room votes on where a plan names none: the first and the last."""
    questions = [question.text for question in section.questions]
    return [*questions[:1], *questions[1:][-1:]]


def listed(titles: list[str]) -> str:
    """Return the titles of sections as words of a sentence."""
    *first, last = (f"*{title}*" for title in titles)
    return f"{', '.join(first)} and {last}" if first else last


def printed(questions: list[str]) -> str:
    """Return questions as a cell of a plan's table."""
    return " ".join(f"*{text}*".replace("|", "\\|") for text in questions)


def plans(root: Path) -> dict[str, str]:
    """Return the text of each plan's page, by the name of its file.

    Raises:
        BookError: a plan names what does not exist or is not core, or its minutes do not add up.
    """
    known: dict[str, Lesson] = {}

    def lessons(chapter: str) -> Lesson:
        if chapter not in known:
            known[chapter] = Lesson(root / "book" / f"{chapter}.ipynb")
        return known[chapter]

    written = {}
    for plan in yaml.safe_load((root / SOURCE).read_text(encoding="utf-8")):
        parts = [Part(told, lessons) for told in plan["parts"]]
        paragraphs = [WRITTEN, f"# {plan['title']}", plan["intro"].strip()]
        for part in parts:
            paragraphs += part.text()
        paragraphs += [plan.get("outro", "").strip()]
        written[f"{plan['page']}.md"] = "\n\n".join(filter(None, paragraphs)) + "\n"
    return written


def main() -> int:
    """Write all plans below the current folder."""
    try:
        for name, text in plans(Path()).items():
            (FOLDER / name).write_text(text, encoding="utf-8")
            print(f"Written: {FOLDER / name}")
    except BookError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
