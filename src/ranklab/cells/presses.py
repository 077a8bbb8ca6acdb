"""The reader's presses of stop while a cell is on the ranks: noted, so that none of them loses the report."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | int | None  # what signal.signal returns: who got the signal before


class Presses:
    """Notes SIGINT instead of raising ``KeyboardInterrupt`` wherever the notebook happens to be.

    The first press ends the cell, and its report says so; those that follow change nothing, because what they ask for
    is under way. A press that came too late for the cell is raised at the end, so that the cells after it do not run.
    """

    def __init__(self) -> None:
        self._pressed = self._taken = False
        self._before: Handler = None

    def __enter__(self) -> Presses:
        with contextlib.suppress(ValueError):  # not the main thread: no signal arrives here anyway
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: object) -> None:
        self._pressed = True

    def take(self) -> bool:
        """Say whether stop was pressed; whoever asks ends the cell."""
        self._taken = self._taken or self._pressed
        return self._taken

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._pressed and not self._taken and kind is None:
            raise KeyboardInterrupt
