"""What happens while ranks start, shown from the first moment until they are there.

A thread shows it, because libraries wait meanwhile: importing ipyparallel, or asking its controller for a connection,
comes back after many seconds on a busy machine.
"""

from __future__ import annotations

import contextvars
import threading

from ..live import Live

LOOK = 0.1


class Progress:
    """A line that says what is being waited for and since when; nothing where nobody watches.

    Args:
        doing: what happens first.
        after: seconds before it is shown.
    """

    def __init__(self, doing: str, after: float = 1.0) -> None:
        self._doing = doing
        self._live = Live(after)
        self._over = threading.Event()
        # A notebook knows by the context to which cell a display belongs.
        self._thread = threading.Thread(
            target=contextvars.copy_context().run, args=(self._show,), daemon=True, name="progress"
        )

    def __enter__(self) -> Progress:
        if self._live.watched:
            self._thread.start()
        return self

    def now(self, doing: str) -> None:
        """Say what happens from here on."""
        self._doing = doing

    def _show(self) -> None:
        while not self._over.wait(LOOK):
            if self._live.due():
                self._live.show({"text/plain": f"{self._doing}, {self._live.seconds} s"})

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._live.finish()
