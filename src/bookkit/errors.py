"""The two ways in which a verb fails, a sentence or a chapter that stopped at a cell, and their grammar."""

from rich.console import Group
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text


def count(number, noun, plural=None):
    """A number with its noun: ``1 chapter``, ``2 chapters``."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


class BookError(Exception):
    """Something an author can fix; its text is the sentence to show."""


class ChapterError(BookError):
    """A chapter stopped: where, what it ran and what it said.

    Args:
        chapter: the chapter's path, as the author would type it.
        reason: one sentence.
        cell: the cell's name, as ``notebook.cell_name`` gives it; None where no cell is to blame.
        source: the cell's source.
        error: what the cell printed as its error, with or without colour codes.
    """

    def __init__(self, chapter, reason, *, cell=None, source="", error=""):
        self.chapter, self.reason, self.cell = chapter, reason, cell
        self.source, self.error = source, error
        super().__init__(str(self))

    @property
    def said(self):
        """The last line of what the cell printed as its error: ``AssertionError: …``; "" where it printed none."""
        lines = Text.from_ansi(self.error).plain.strip().splitlines() if self.cell else []
        return lines[-1].strip() if lines else ""

    def __str__(self):
        where = f"{self.chapter}, {self.cell}" if self.cell else str(self.chapter)
        parts = [f"{where}: {self.reason}", self.source, Text.from_ansi(self.error).plain]
        return "\n\n".join(part for part in parts if part)

    def __rich__(self):
        """The same for a terminal: source with line numbers, traceback in its colours."""
        parts: list[Text | Syntax] = [Text(self.reason, style="bold")]
        if self.source:
            source = Syntax(self.source, "python", line_numbers=True, word_wrap=True, background_color="default")
            parts += [Text(), source]
        if self.error:
            parts += [Text(), Text.from_ansi(self.error)]
        title = Text(f"{self.chapter}" + (f" · {self.cell}" if self.cell else ""))
        return Panel(Group(*parts), title=title, border_style="red", title_align="left")
