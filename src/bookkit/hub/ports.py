"""Free ports of this machine's loopback."""

from __future__ import annotations

import socket
from contextlib import ExitStack


def free(count: int) -> list[int]:
    """Return so many ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def taken(address: str, port: int) -> bool:
    """Return whether somebody listens on a port already."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((address, port))
        except OSError:
            return True
    return False
