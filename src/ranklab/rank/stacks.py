"""Reading the stacks that torch's recorder has noted, without loading torch's compiler for it.

To name the functions of a stack torch looks for the compiler's cache of code (``torch.symbolize``, seen in 2.13), and
the first look at ``torch._inductor`` imports the compiler: seconds, in the thread that has to answer within one. Where
nobody has imported it there is no code of its own in any stack. Runs inside a rank. Standard library only.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

COMPILER = "_inductor"


class _NotLoaded:
    """Stands for the compiler: has nothing for one thread, and is the compiler for all others.

    Args:
        thread: identity of the one that reads stacks.
    """

    def __init__(self, thread: int) -> None:
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        if threading.get_ident() == self._thread:
            raise AttributeError(name)
        return getattr(importlib.import_module(f"torch.{COMPILER}"), name)


@contextlib.contextmanager
def without_compiler() -> Iterator[None]:
    """Let torch find no compiler in this thread, unless the reader has imported it."""
    names = vars(sys.modules["torch"])
    stand_in = _NotLoaded(threading.get_ident())
    names.setdefault(COMPILER, stand_in)
    try:
        yield
    finally:
        if names.get(COMPILER) is stand_in:  # an import has not put the compiler itself there
            del names[COMPILER]
