"""A free TCP port for rank 0, from the operating system."""

from __future__ import annotations

import errno
import socket


def reserve_port(host: str = "127.0.0.1") -> socket.socket:
    """Hold a free port for rank 0 to listen on.

    The socket is bound but does not listen: other programs that ask for any free port do not get this one, and
    rank 0, which sets SO_REUSEADDR as we do, does. So does a program that has asked for a free port before, given it
    back, and binds it now, as ipyparallel's controllers do: :func:`says_taken` knows what rank 0 says then.

    Args:
        host: an address of this computer; only ports of it are looked at.

    Returns:
        The socket that holds the port; close it to give the port back.

    Raises:
        OSError: no port is free, or the address is not this computer's.
    """
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((host, 0))
    return holder


def says_taken(told: object) -> bool:
    """Say whether an error of a rank means that another program listens on its port."""
    return str(told).startswith(f"[Errno {errno.EADDRINUSE}]")
