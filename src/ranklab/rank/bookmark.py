"""Where in its cell a rank was, readable after its death; and whether the cell that ended called a collective.

``kill -9`` and a lack of memory leave a process no moment for a last word. So each top-level statement of a cell
first puts its line number into a shared page of memory, a file in the world's private folder (read by
:mod:`ranklab.system.home`). The notebook reads there, too, whether there is anything to ask after a cell, which
wakes no rank. Runs inside a rank. Standard library only.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from types import CodeType

from ..system.home import BOOKMARK


class Bookmark:
    """The line of the present cell's statement.

    Args:
        path: the file, made here.
        has_called: says whether the present cell has called a collective.
    """

    def __init__(self, path: Path, has_called: Callable[[], bool]) -> None:
        with path.open("w+b") as file:
            file.write(BOOKMARK.pack(0, False))
            file.flush()
            self._page = mmap.mmap(file.fileno(), BOOKMARK.size)
        self._has_called = has_called

    def follow(self, shell) -> None:
        """Note each statement before it runs.

        Args:
            shell: the rank's IPython shell, which runs a cell statement by statement (``run_ast_nodes``).
        """
        run = shell.run_code

        async def run_code(code: CodeType, *arguments, **options):
            self._note(_first_line(code))
            return await run(code, *arguments, **options)

        shell.run_code = run_code
        shell.events.register("post_run_cell", self.clear)

    def clear(self, *_: object) -> None:
        """Note that no statement runs."""
        self._note(0, self._has_called())

    def _note(self, line: int, called: bool = False) -> None:
        self._page[:] = BOOKMARK.pack(line, called)


def _first_line(code: CodeType) -> int:
    return min((line for _, _, line in code.co_lines() if line), default=0)
