"""Questions of the notebook to the watchdog of a rank, answered also while the rank is busy or stuck."""

from __future__ import annotations

import socket
from pathlib import Path

from ..state import Answer, read
from ..system.patience import ANSWER

ANSWER_BYTES = 1 << 20


def ask(path: Path, question: str, timeout: float = ANSWER) -> Answer | None:
    """Ask the watchdog of a rank.

    Args:
        path: where it listens.
        question: one of :data:`ranklab.state.QUESTIONS`.
        timeout: seconds to wait for the answer.

    Returns:
        The answer, or None where the process is gone, stopped or too busy to answer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(str(path))
            connection.sendall(question.encode())
            parts = []
            while part := connection.recv(ANSWER_BYTES):
                parts.append(part)
        except OSError:
            return None
    return read(question, b"".join(parts))
