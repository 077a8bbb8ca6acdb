"""Free TCP ports from the operating system: rank 0's, and those of ipyparallel's controller."""

from __future__ import annotations

import errno
import os
import socket


def reserve_port(host: str = "127.0.0.1") -> socket.socket:
    """Hold a free port for a program to listen on.

    The socket is bound but does not listen: other programs that ask for any free port do not get this one, and
    one that is told of it and sets SO_REUSEADDR as we do (torch's store, ZeroMQ) does. So does a program that has asked
    for a free port before, given it back, and binds it now: :func:`says_taken` knows what is said then.

    Args:
        host: an address of this computer; only ports of it are looked at. "" means all its addresses.

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
    """Say whether the error of a rank, or of the controller, means that another program listens on its port."""
    return os.strerror(errno.EADDRINUSE) in str(told)
