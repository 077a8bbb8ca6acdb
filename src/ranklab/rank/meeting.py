"""The place where ranks meet, opened before they come. Runs inside rank 0.

``dist.init_process_group()`` makes rank 0 serve a ``TCPStore`` at ``MASTER_PORT``. A rank that calls a moment earlier
is refused, and torch lets it wait about half a second before it calls again (``ExponentialBackoffWithJitter`` in
torch/csrc/distributed/c10d/Backoff.cpp, 2.13). Here the store is opened beforehand, in the same process and shared
with the reader's call by torch itself (``multi_tenant``: one server a port and process). It listens on the loopback
interface only, where a store that torch opens listens on all.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from typing import Any

LOOK = 0.005  # seconds; making a process group takes longer
_store: Any = None


def open_store() -> None:
    """Serve a store at ``MASTER_PORT``, if this is rank 0 and it has torch already."""
    global _store
    _store = None
    distributed = sys.modules.get("torch.distributed")
    if os.environ["RANK"] != "0" or distributed is None or not distributed.is_available():
        return
    _store = serve_store(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def serve_store(host: str, port: int) -> Any:
    """Serve a ``TCPStore`` at one address only; one that torch opens by itself listens on every interface.

    Args:
        host: an address of this computer.
        port: 0 takes a free one.

    Returns:
        The store; groups meet in it while it exists.

    Raises:
        OSError: the port is taken.
        RuntimeError: torch cannot serve there.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the notebook holds the port, see ports.py
    listener.bind((host, port))
    listener.listen(socket.SOMAXCONN)
    port, inode, descriptor = listener.getsockname()[1], os.fstat(listener.fileno()).st_ino, listener.detach()
    try:
        return sys.modules["torch.distributed"].TCPStore(
            host,
            port,
            int(os.environ["WORLD_SIZE"]),
            True,
            wait_for_workers=False,
            multi_tenant=True,
            use_libuv=True,
            master_listen_fd=descriptor,
        )
    except BaseException:
        _close(descriptor, inode)
        raise


def _close(descriptor: int, inode: int) -> None:
    """Close a socket, unless torch has closed it: its number may be another file's by now."""
    with contextlib.suppress(OSError):  # nothing has that number
        if os.fstat(descriptor).st_ino == inode:
            os.close(descriptor)


def watch_cells(shell) -> None:
    """Let the store go as soon as a process group of the reader's uses it.

    It has to end with that group: the next group would find the keys of the last one in it. A cell can make and
    destroy a group, so waiting for its end would be too late.

    Args:
        shell: the rank's IPython shell.
    """
    over = threading.Event()

    def look() -> None:
        while _store is not None and not over.wait(LOOK):
            _let_go()

    def begin(*_: object) -> None:
        if _store is not None:
            over.clear()
            threading.Thread(target=look, daemon=True, name="meeting").start()

    def end(*_: object) -> None:
        over.set()
        _let_go()

    shell.events.register("pre_run_cell", begin)
    shell.events.register("post_run_cell", end)


def _let_go() -> None:
    global _store
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_initialized():
        _store = None
