"""What can go wrong, as sentences a beginner can act on.

A notebook shows the sentence alone: the Python frames of the helper are not the reader's concern.
"""

from __future__ import annotations


class RanklabError(Exception):
    """Base of everything ranklab raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: show the sentence, not the frames of the helper."""
        return [f"{type(self).__name__}: {self}"]


class WorldError(RanklabError, ValueError):
    """A request that no world can fulfil: bad size, no such rank, no ranks running."""


class NoHosts(WorldError):
    """This machine allows no hosts of their own.

    Args:
        reason: why, a sentence.
        fix: what to do to allow them, "" where nothing can be done.
    """

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(f"{reason} To allow them: {fix}." if fix else reason)
        self.reason, self.fix = reason, fix


class StartLost(RanklabError):
    """A start lost a port to another program, or a connection; starting again helps."""


class RankError(RanklabError):
    """A cell failed on at least one rank; the panel above it tells where."""


class RankTimeout(RanklabError, TimeoutError):
    """A cell was not finished on every rank at its deadline."""


def one_line(error: BaseException) -> str:
    """Return an exception as Python's last line of a traceback says it, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
