"""The place where ranks meet: opened before they come, and a new one for each group. Runs inside a rank.

``dist.init_process_group()`` makes rank 0 serve a ``TCPStore`` at ``MASTER_PORT``. A rank that calls a moment earlier
is refused, and torch lets it wait about half a second before it calls again (``ExponentialBackoffWithJitter`` in
torch/csrc/distributed/c10d/Backoff.cpp, 2.13). Here the store is opened beforehand, in the same process and shared
with the reader's call by torch itself (``multi_tenant``: one server a port and process). It listens on the loopback
interface only, where a store that torch opens listens on all.

A store has to end with the group that met in it, because the next group would find the addresses of the last one
there. So torch's table of ways to meet (``_rendezvous_handlers`` in torch/distributed/rendezvous.py, 2.13) gets what
happens around each meeting: ours lets go as soon as the reader's own store shares the server, and a rank that comes
back before rank 0 has left the last group waits until that server has ended. Where rank 0 keeps it alive (a DDP model
holds the group that it was built with), rank 0 says so in it when it comes back, and the group meets under a prefix.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

Meeting = tuple[Any, int, int]  # a store, a rank and a world size
PATIENCE = timedelta(minutes=30)  # of torch
MOMENT = 0.05  # seconds; a server that ends closes its connections first and its port a moment later
COUNT = "ranklab meetings"  # how many groups have met in a server
WAYS = ("env", "tcp")  # the ways to meet that lead to a TCPStore
_store: Any = None
_last: LastMeeting | None = None


@dataclass
class LastMeeting:
    """Where this rank has met last.

    Attributes:
        place: address and port.
        store: of the meeting; this rank's own connection to the server.
        line: a connection that says nothing, and hears the server end.
        number: of the meeting, among those in that server.
    """

    place: str
    store: Any
    line: socket.socket
    number: int


def open_store() -> None:
    """Serve a store at ``MASTER_PORT``, if this is rank 0 and it has torch already."""
    global _store
    _store = None
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return
    _attend_meetings()
    if os.environ["RANK"] == "0":
        _store = serve_store(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def count_anew() -> None:
    """Let this rank's next process group have the first name, as on the other ranks; it must be in no group.

    torch names groups by counting them, also one that failed half-way, because another rank had left again already. The
    ranks would then look for each other under two names, and never meet (``_process_group_name`` in
    torch/distributed/distributed_c10d.py, 2.13).
    """
    sys.modules["torch.distributed"].distributed_c10d._world.group_count = 0


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


def _attend_meetings() -> None:
    """Be there whenever this rank looks for the others; torch does the looking."""
    # Not by its dotted name: torch.distributed has a function of that name.
    handlers = sys.modules["torch.distributed.rendezvous"]._rendezvous_handlers
    for way in WAYS:
        if not hasattr(handlers[way], "__wrapped__"):
            handlers[way] = _attended(handlers[way])


def _attended(meet: Callable[..., Iterator[Meeting]]) -> Callable[..., Iterator[Meeting]]:
    """Return one of torch's ways to meet, with our store ending in time and each group meeting in a store of its own.

    Args:
        meet: yields where the group meets; called with a URL and a timeout.
    """

    @functools.wraps(meet)
    def attended(url: str, **options: Any) -> Iterator[Meeting]:
        global _store
        arrive = functools.partial(meet, url, **options)
        try:
            found = _serve(arrive) if _serves(url) else _join(arrive, _place(url), options.get("timeout", PATIENCE))
        finally:
            _store = None  # the reader's own store shares the server by now, or there is no meeting
        yield found

    return attended


def _serves(url: str) -> bool:
    """Say whether this rank is the one that serves the store."""
    told = parse_qs(urlsplit(url).query).get("rank", [os.environ.get("RANK", "")])
    return told[0] == "0"


def _place(url: str) -> str:
    return urlsplit(url).netloc or f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"


def _serve(arrive: Callable[[], Iterator[Meeting]]) -> Meeting:
    """Meet as the rank that serves, and tell those who wait where something has kept the last server alive."""
    found = next(arrive())
    number = found[0].add(COUNT, 1)
    if number > 1:
        found[0].set(_prefix(number), "")
    return _under(found, number)


def _join(arrive: Callable[[], Iterator[Meeting]], place: str, patience: timedelta) -> Meeting:
    """Meet when the server of the last meeting at the same place has ended, or its rank has come back."""
    global _last
    number = 1
    if _last is not None:
        with _last.line:
            if _last.place == place:
                number = _await_next(_last, patience)
        _last = None
    found = next(arrive())
    with contextlib.suppress(OSError):  # rank 0 has given up already
        _last = LastMeeting(place, found[0], socket.create_connection((found[0].host, found[0].port)), number)
    return _under(found, number)


def _await_next(last: LastMeeting, patience: timedelta) -> int:
    """Return the number of the next meeting in the last server; 1 where that server has ended."""
    until = time.monotonic() + patience.total_seconds()
    last.line.settimeout(MOMENT)
    with contextlib.suppress(OSError, RuntimeError):  # both can have been cut
        while time.monotonic() < until:
            try:
                last.line.recv(1)
                break
            except TimeoutError:
                if last.store.check([_prefix(last.number + 1)]):
                    return last.number + 1
    time.sleep(MOMENT)
    return 1


def _prefix(number: int) -> str:
    return f"{COUNT} {number}"


def _under(found: Meeting, number: int) -> Meeting:
    """Return the meeting under a prefix of its own, where it is not the first in its server."""
    if number == 1:
        return found
    store, rank, size = found
    return sys.modules["torch.distributed"].PrefixStore(_prefix(number), store), rank, size
