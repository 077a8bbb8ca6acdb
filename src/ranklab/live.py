"""Something to look at while ranks work, replaced by the result and never stored.

Nothing is shown where nobody watches: under ``IPP_NONINTERACTIVE`` (recording, tests) and outside IPython without
a terminal.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

AFTER = 1.0
EVERY = 0.5


class Live:
    """A display that appears after a second, changes in place and ends as the result.

    Args:
        after: seconds before anything is shown, so that quick cells do not flicker.
    """

    def __init__(self, after: float = AFTER) -> None:
        self._began = time.monotonic()
        self._next = self._began + after
        self._handle: Any = None
        self._line = False
        self._kind = _audience()

    @property
    def seconds(self) -> int:
        """Whole seconds since the start."""
        return int(time.monotonic() - self._began)

    @property
    def watched(self) -> bool:
        """Whether somebody is there to whom something can be shown."""
        return self._kind != "nobody"

    def due(self) -> bool:
        """Say whether it is time to show something new."""
        return self.watched and time.monotonic() >= self._next

    def show(self, bundle: dict[str, str]) -> None:
        """Show a MIME bundle in place of the one before; a terminal gets its first line only."""
        self._next = time.monotonic() + EVERY
        if self._kind == "notebook":
            from IPython.display import display

            if self._handle is None:
                self._handle = display(bundle, raw=True, display_id=True)
            else:
                self._handle.update(bundle, raw=True)
        elif self._kind == "terminal":
            line = bundle["text/plain"].split("\n", 1)[0][:79]
            sys.stderr.write(f"\r\x1b[2K{line}")
            sys.stderr.flush()
            self._line = True

    def finish(self, bundle: dict[str, str] | None = None, metadata: dict | None = None) -> None:
        """Replace what is shown by the result, or take it away where there is none."""
        if self._line:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
        if self._handle is not None:
            self._handle.update(bundle or {"text/plain": ""}, raw=True, metadata=metadata)
        elif bundle:
            publish(bundle, metadata)


def tell(sentence: str) -> None:
    """Say something about this machine to whoever watches; it is neither recorded nor compared."""
    kind = _audience()
    if kind == "notebook":
        publish({"text/plain": sentence})
    elif kind == "terminal":
        print(sentence, file=sys.stderr)


def publish(bundle: dict[str, str], metadata: dict | None = None) -> None:
    """Show a MIME bundle where there is IPython; print its text elsewhere."""
    if _shell() is None:
        if "text/plain" in bundle:
            print(bundle["text/plain"])
        return
    from IPython.display import display

    display(bundle, raw=True, metadata=metadata)


def is_recorded() -> bool:
    """Say whether a chapter is recorded or tested: nobody watches, and what is printed is kept or compared."""
    return bool(os.environ.get("IPP_NONINTERACTIVE"))


def _audience() -> str:
    if is_recorded():
        return "nobody"
    shell = _shell()
    if shell is not None and hasattr(shell, "kernel"):
        return "notebook"
    return "terminal" if sys.stderr.isatty() else "nobody"


def _shell() -> Any:
    # A program that never imported IPython has no shell, and asking must not import it.
    module = sys.modules.get("IPython")
    return module.get_ipython() if module else None
