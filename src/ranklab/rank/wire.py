"""What the kernel has counted on this process's connections to other ranks. Standard library only."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from collections.abc import Set

from .cut import connections

# struct tcp_info in include/uapi/linux/tcp.h: where its fields begin, and its length since Linux 4.19.
NOT_YET_SENT = struct.Struct("=144xI")
SENT_AND_SENT_AGAIN = struct.Struct("=200xQQ")
LENGTH = 216


def written(ours: Set[int] = frozenset()) -> dict[int, int] | None:
    """Return how many bytes this process has written to each of its connections to other ranks.

    TCP counts what it has sent (``tcpi_bytes_sent``), with what it had to send again and without what still waits in
    the machine's buffer; both are set right here. Headers of TCP and IP are not among them, gloo's own are.

    Args:
        ours: inode numbers of connections that are not between ranks.

    Returns:
        Bytes by the inode number of the connection, without those to the store at ``MASTER_PORT``; None where the
        kernel does not count (only Linux does).
    """
    if not sys.platform.startswith("linux"):
        return None
    store = int(os.environ.get("MASTER_PORT", 0))
    found = {}
    for inode, connection in connections():
        # The other side may reset it at any time: then it is gone, as one that closed earlier.
        with contextlib.suppress(OSError):
            if inode in ours or store in (connection.getpeername()[1], connection.getsockname()[1]):
                continue
            told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LENGTH)
            if len(told) < LENGTH:
                return None
            sent, again = SENT_AND_SENT_AGAIN.unpack_from(told)
            found[inode] = sent - again + NOT_YET_SENT.unpack_from(told)[0]
    return found
