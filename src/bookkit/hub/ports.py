"""Free ports of this machine's loopback, and whether somebody listens on one."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import ExitStack

from bookkit.errors import BookError

NOT_OURS = (
    "--address {address} is no IPv4 address of this machine ({why}): take 127.0.0.1 for this machine alone or 0.0.0.0 "
    "for all of its addresses"
)


def free(count: int) -> list[int]:
    """Return so many ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def taken(address: str, port: int) -> bool:
    """Return whether somebody listens on a port already.

    Raises:
        BookError: nobody could listen there: the address is not this machine's, or the port not this user's.
    """
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((address, port))
        except PermissionError:
            raise BookError(f"Only root may listen on port {port}: take one from 1024 on with --port") from None
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            raise BookError(NOT_OURS.format(address=address, why=error.strerror)) from None
        except UnicodeError:  # a name that cannot even be asked for
            raise BookError(NOT_OURS.format(address=address, why=os.strerror(errno.EINVAL))) from None
    return False
