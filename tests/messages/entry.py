"""One message: its text as a terminal shows it, and what is known of it."""

import re
from dataclasses import dataclass

GAP = "…"  # stands where a number, a name or a path differs from run to run


@dataclass(frozen=True)
class Message:
    """A message of the index.

    Attributes:
        core: its best known words, the heading; they stand in the text as they are.
        text: what the terminal shows, "" where that is the core alone; ``…`` for what differs.
        means: what is the case, one sentence.
        causes: why, the likeliest first.
        fix: what to do.
        by: the program that prints it, ``module.function`` below programs, or "" where none of ours does.
        source: where the text of one that is not produced here stands: "file of torch: symbol", or project and file.
        seen: where a GPU printed it, "" where no recorded run did.
        see: "page#Section" below book, the place in the book where it happens or is explained.
        threads: public addresses where people have met it.
    """

    core: str
    means: str
    causes: tuple[str, ...]
    fix: str
    text: str = ""
    by: str = ""
    source: str = ""
    seen: str = ""
    see: str = ""
    threads: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The text as it stands on the page."""
        return self.text or self.core

    @property
    def pattern(self) -> re.Pattern:
        """What finds it in a terminal's text: each gap is anything, each break of a line any white space."""
        pieces = [r"\s+".join(map(re.escape, piece.split())) for piece in self.shown.split(GAP)]
        return re.compile(r"[\s\S]{0,2000}?".join(pieces))


@dataclass(frozen=True)
class Group:
    """Messages that look alike to the reader.

    Attributes:
        title: what the reader sees.
        opening: what holds for all of them.
        messages: the messages.
    """

    title: str
    opening: str
    messages: tuple[Message, ...]


def terminal(heard: str) -> str:
    """Return what a program has printed, without the rank that torch writes in front of each line."""
    return re.sub(r"^\[rank\d+\]: ?", "", heard, flags=re.M)
