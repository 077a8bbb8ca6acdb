"""Ending what a rank waits for, from a thread beside it: its connections are cut, or its groups are aborted.

Runs inside a rank, in the watchdog's thread. Standard library only; torch is looked up where the reader has imported
it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator

from ..system.backends import of_group
from ..system.patience import ABORT


def cut(ours: set[int]) -> int:
    """End every wait of this rank for another one; return how many connections were shut down.

    Gloo notices at once and raises in the thread that waits. It does not where it is just about to answer a message
    (Pair::sendAsyncMode in gloo/transport/tcp/pair.cc forgets an operation whose write fails), so ranks are cut when
    they have come to rest: see :func:`ranklab.cells.recovery.free`.

    Args:
        ours: inode numbers of the notebook's own connections, which stay.
    """
    _abort_groups()
    count = 0
    for inode, connection in connections():
        if inode not in ours:
            # The other side may have closed it in the meantime, which is as good.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
                count += 1
    return count


def connections() -> Iterator[tuple[int, socket.socket]]:
    """Yield the connected TCP sockets of this process with their inode numbers."""
    for name in os.listdir("/dev/fd"):
        try:
            descriptor = os.dup(int(name))
        except OSError:  # the descriptor of the listing itself, or one closed meanwhile
            continue
        try:
            connection = socket.socket(fileno=descriptor)
        except OSError:  # not a socket
            os.close(descriptor)
            continue
        with connection:
            internet = connection.family in (socket.AF_INET, socket.AF_INET6)
            if internet and connection.type == socket.SOCK_STREAM:
                with contextlib.suppress(OSError):  # listening or half closed: no peer
                    connection.getpeername()
                    yield os.fstat(descriptor).st_ino, connection


def _abort_groups() -> None:
    """Abort all groups where a backend needs it: kernels that wait on a GPU end, and the groups are gone."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    world = distributed.distributed_c10d._world
    if not any(backend.aborts for config in world.pg_backend_config.values() for backend in of_group(config)):
        return
    # The abort itself can hang (NVIDIA/nccl issue 1013): the watchdog has to stay reachable.
    aborting = threading.Thread(target=distributed.distributed_c10d._abort_process_group, daemon=True, name="abort")
    aborting.start()
    aborting.join(ABORT)
