"""Questions of the notebook to the watchdog of a rank, answered also while the rank is busy or stuck."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from ..state import Answer, read
from ..system.patience import ANSWER

ANSWER_BYTES = 1 << 20
More = Callable[[], float]


def ask(path: Path, question: str, timeout: float = ANSWER, more: More | None = None) -> Answer | None:
    """Ask the watchdog of a rank.

    Args:
        path: where it listens.
        question: one of :data:`ranklab.state.QUESTIONS`.
        timeout: seconds to wait for the answer.
        more: called when they are over: the seconds to wait yet, 0 to give up. The question is asked once all the same:
            a watchdog that has no processor would answer those first that nobody waits for any more.

    Returns:
        The answer, or None where the process is gone, stopped or too busy to answer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        parts: list[bytes] = []
        try:
            connection.connect(str(path))
            connection.sendall(question.encode())
            while _receive(connection, parts, more):
                pass
        except OSError:
            return None
    return read(question, b"".join(parts))


def _receive(connection: socket.socket, parts: list[bytes], more: More | None) -> bool:
    """Add what comes next to the parts; say whether anything can follow."""
    while True:
        try:
            part = connection.recv(ANSWER_BYTES)
        except TimeoutError:
            seconds = more() if more else 0
            if not seconds:
                raise
            connection.settimeout(seconds)
        else:
            parts.append(part)
            return bool(part)
