"""Which cells of a chapter become slides, by rule: nobody marks them, and nobody keeps a second copy.

The beginning and what the reader will learn; in the core sections every question, the cell that answers it with its
stored output and the first sentences that read it aloud, every cell in which ranks talk and print, every figure, and
what is wrong on purpose; then the exercises and the summary. What a page says besides is in the notes of a slide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bookkit.needs import NEEDS_GPU
from bookkit.normalise import HIDDEN
from bookkit.notebook import tags
from bookkit.teaching.lessons import Lesson, Question, Section
from bookkit.teaching.notes import Notes
from bookkit.teaching.words import bare, last_sentences, paragraphs, sentences

ROOM = 580  # pixels of a slide of 720 below its heading
WIDE = 80  # characters of code, or of output, in a line
MOST_OUTPUT = 12  # lines; an output that is longer is cut
CONTEXT, ANSWER = 60, 44  # words before a question, and of the sentences that answer it
WRONG = "raises-exception"
TALKS = re.compile(r"\bdist\.(?!init_process_group|get_|is_)[a-z_]+\(")  # a cell in which ranks talk is the lesson


@dataclass
class Block:
    """A piece of a slide: text, question, code, output, picture or list.

    Attributes:
        kind: one of these words.
        text: its Markdown, code, output, or base64 of the picture.
        alt: what a picture shows.
        items: of a list, or the offered answers.
    """

    kind: str
    text: str = ""
    alt: str = ""
    items: list[str] = field(default_factory=list)

    @property
    def height(self) -> int:
        """Roughly what it takes of a slide, in pixels."""
        if self.kind in ("code", "output"):
            return 31 * lines_of(self.text) + 46
        if self.kind == "picture":
            return ROOM
        if self.kind == "question":
            return 56 * (1 + len(self.text) // 50) + sum(56 * (1 + len(item) // 58) for item in self.items) + 26
        if self.kind == "list":
            return sum(44 * (1 + len(item) // 68) + 14 for item in self.items)
        return 44 * (1 + len(self.text) // 70) + 22


@dataclass
class Slide:
    """One slide: its heading, its blocks, and what the speaker reads."""

    heading: str
    blocks: list[Block]
    notes: list[str] = field(default_factory=list)
    kind: str = ""


def lines_of(text: str) -> int:
    """How many lines a text takes on a slide, long ones wrapped."""
    return sum(1 + max(0, len(line) - 1) // WIDE for line in text.split("\n"))


def cut(text: str, most: int = MOST_OUTPUT) -> str:
    """Return the first lines of an output, and an ellipsis where more follow."""
    kept: list[str] = []
    for line in text.rstrip().split("\n"):
        if lines_of("\n".join([*kept, line])) > most:
            return "\n".join([*kept, "…"])
        kept.append(line)
    return "\n".join(kept)


def shown(source: str) -> str:
    """Return a cell's code as a slide shows it: one blank line where the page has two."""
    return re.sub(r"\n\s*\n\s*\n", "\n\n", source.strip()).replace("%%px\n\n", "%%px\n")


def outputs(cell) -> tuple[str, list[str]]:
    """Return what a code cell printed, and its pictures as base64."""
    printed, pictures = [], []
    for output in cell.outputs:
        if output.output_type == "stream":
            printed.append(output.text)
        elif output.output_type in ("display_data", "execute_result"):
            if "image/png" in output.data:
                pictures.append(output.data["image/png"].strip())
            elif "text/plain" in output.data:
                printed.append(output.data["text/plain"])
    return "\n".join(part.rstrip() for part in printed if part.strip()), pictures


def slides(lesson: Lesson, notes: Notes) -> list[Slide]:
    """Return a chapter's slides in their order."""
    cells = lesson.notebook.cells
    made = [_title(lesson, notes), *_listed(lesson, "What you will learn")]
    for section in lesson.core:
        teacher = _Section(section, [cells[place] for place in section.cells], notes)
        made += teacher.slides()
    if not any(slide.kind == "picture" for slide in made):
        made += _figures(lesson)
    if lesson.exercises:
        items = [f"{exercise.stars} {exercise.title}" for exercise in lesson.exercises]
        made.append(Slide("Exercises", [Block("list", items=items)], ["The solutions stand folded on the page."]))
    return made + _listed(lesson, "Summary")


def _title(lesson: Lesson, notes: Notes) -> Slide:
    why = paragraphs(lesson.notebook.cells[0].source.partition("\n|")[0])
    told = [*why[1:], notes.time and f"Time: {notes.time}", notes.drawing and f"On the wall: {notes.drawing}"]
    minutes = f"{sum(section.minutes for section in lesson.core)} minutes"
    first = Block("text", sentences(why[0], 80) if why else "")
    return Slide(lesson.title, [first, Block("small", minutes)], [line for line in told if line], "title")


def _figures(lesson: Lesson) -> list[Slide]:
    """The figures of the sections for those who read on: a chapter whose core has none shows these."""
    made = []
    for section in (each for each in lesson.sections if each.kind == "More"):
        for cell in (lesson.notebook.cells[place] for place in section.cells):
            if cell.cell_type == "code":
                alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
                pictures = [Block("picture", image, alt) for image in outputs(cell)[1]]
                made += [Slide(section.title, [picture], [], "picture") for picture in pictures]
    return made


def _listed(lesson: Lesson, title: str) -> list[Slide]:
    items = [bare(item) for item in lesson.bullets(title)]
    fewest = len(dealt(items, ROOM))
    # As few slides as hold them, and these about equally full: a last slide with one line looks like a slip.
    height = next(height for height in range(0, ROOM + 1, 20) if len(dealt(items, height)) == fewest)
    return [Slide(title, [Block("list", items=page)]) for page in dealt(items, height)]


def dealt(items: list[str], height: int) -> list[list[str]]:
    """Deal the items of a list to slides of so many pixels, in order; one that is higher has a slide of its own."""
    pages: list[list[str]] = []
    for item in items:
        if not pages or Block("list", items=[*pages[-1], item]).height > height:
            pages.append([])
        pages[-1].append(item)
    return pages


class _Section:
    """The slides of one section: reads its cells in their order."""

    def __init__(self, section: Section, cells, notes: Notes) -> None:
        self.section, self.cells = section, cells
        self.made: list[Slide] = []
        self.told = notes.at(section.title)
        self.open = 0  # questions that no output has answered yet

    def slides(self) -> list[Slide]:
        """Return them."""
        for cell in self.cells:
            if cell.cell_type == "markdown":
                self._text(cell.source)
            elif NEEDS_GPU not in tags(cell):
                self._code(cell)
        if self.told and self.made:
            self.made[-1].notes += self.told
        elif self.told:
            # Nothing to vote on and nothing to look at: the section's first words are its slide.
            words = [text for cell in self.cells if cell.cell_type == "markdown" for text in paragraphs(cell.source)]
            self._add([Block("text", sentences(words[0], CONTEXT))] if words else [])
        return self.made

    def _add(self, blocks: list[Block], kind: str = "") -> None:
        page: list[Block] = []
        for block in blocks:
            if page and sum(each.height for each in [*page, block]) > ROOM:
                self._put(page, kind)
                page = []
            page.append(block)
        if page:
            self._put(page, kind)

    def _put(self, blocks: list[Block], kind: str) -> None:
        self.made.append(Slide(self.section.title, blocks, self.told, kind))
        self.told = []

    def _text(self, source: str) -> None:
        for paragraph in paragraphs(source):
            found = [question for question in self.section.questions if f"**{bare(question.text)}**" in paragraph]
            if found:
                for question in found:
                    self._ask(question, paragraph.partition("**")[0].strip())
            elif re.match(r"The answers? ", paragraph) and self.made:
                self._answer(paragraph)
            else:
                self.told.append(paragraph)

    def _ask(self, question: Question, before: str) -> None:
        context = before or (self.told[-1] if self.told and not self.told[-1].startswith(("People", "Ask:")) else "")
        blocks = [Block("text", last_sentences(context, CONTEXT))] if context else []
        offered = [f"**{letter}** {words}" for letter, words in question.offered.items()]
        self._add([*blocks, Block("question", question.text, items=offered)], "vote")
        self.open += 1

    def _answer(self, paragraph: str) -> None:
        block = Block("text", sentences(paragraph, ANSWER))
        last = self.made[-1]
        if last.kind in ("vote", "picture") or sum(each.height for each in [*last.blocks, block]) > ROOM:
            self._add([block])
        else:
            last.blocks.append(block)
        self.made[-1].notes.append(paragraph)

    def _code(self, cell) -> None:
        printed, pictures = outputs(cell)
        wrong = WRONG in tags(cell)
        if printed and (self.open or wrong or (TALKS.search(cell.source) and HIDDEN not in tags(cell))):
            code = [] if HIDDEN in tags(cell) else [Block("code", shown(cell.source))]
            self._add([*code, Block("output", cut(printed))], "wrong" if wrong else "")
            self.open = 0
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        for picture in pictures:
            self._add([Block("picture", picture, alt)], "picture")
            self.open = 0
