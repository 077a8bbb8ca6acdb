"""The pipes of a process that was started with them.

``subprocess.Popen`` cannot tell type checkers which of its ends are pipes: to them each may be None. Standard library
only.
"""

from __future__ import annotations

from typing import IO, AnyStr


def piped(end: IO[AnyStr] | None) -> IO[AnyStr]:
    """Return this process's end of a pipe.

    Args:
        end: ``stdin``, ``stdout`` or ``stderr`` of a process that was started with ``PIPE`` for it.
    """
    assert end is not None, "this process was started without PIPE"
    return end
