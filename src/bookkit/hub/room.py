"""What a room is told to be: one record, kept as JSON so that the hub's processes read what was asked for."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bookkit.errors import BookError

VARIABLE = "BOOK_HUB_ROOM"  # the file that the hub's own processes read
SHARED = "for-the-instructor"  # the folder in a learner's home whose existence is the learner's consent
BOARD_TOKEN = "BOOK_HUB_BOARD_TOKEN"  # by which the hub knows that service
BOARD = "board"  # the service that is the instructor's page


@dataclass(frozen=True)
class Room:
    """A room of learners on one machine.

    Attributes:
        folder: where all of it lives: the original, the learners' homes, passwords, the hub's database.
        root: the top of the book.
        proxy: the program of the proxy.
        names: who may log in; empty where the password alone decides.
        instructor: who may see the instructor's page.
        address: where the hub listens.
        port: see there.
        memory: GB of private memory that one process may hold.
        cores: processors that one learner may use; 0 for all.
        processes: how many processes and threads one learner may have, 0 for as many as the system allows.
        idle: minutes without use after which a learner's server is ended.
        as_root: whether the hub was told to run as root all the same.
        hub_port: where the hub itself answers, on the loopback like the next two.
        proxy_port: where the proxy takes the hub's orders.
        board_port: where the instructor's page is served.
    """

    folder: Path
    root: Path
    proxy: Path
    names: tuple[str, ...] = ()
    instructor: str = "instructor"
    address: str = "127.0.0.1"
    port: int = 8000
    memory: float = 4.0
    cores: int = 0
    processes: int = 2000
    idle: float = 60.0
    as_root: bool = False
    hub_port: int = 0
    proxy_port: int = 0
    board_port: int = 0

    @property
    def original(self) -> Path:
        """The folder of the book that every learner's copy is made from."""
        return self.folder / "original"

    @property
    def learners(self) -> Path:
        """The folder of the learners' homes."""
        return self.folder / "learners"

    @property
    def passwords(self) -> Path:
        """The file of the room's password and the instructor's."""
        return self.folder / "passwords.txt"

    @property
    def state(self) -> Path:
        """The folder of what the hub itself keeps."""
        return self.folder / "hub"

    def home(self, learner: str) -> Path:
        """Return a learner's home."""
        return self.learners / learner

    def save(self) -> Path:
        """Write the record where the hub's processes find it, and return the file."""
        self.state.mkdir(parents=True, exist_ok=True)
        path = self.state / "room.json"
        path.write_text(json.dumps(asdict(self), default=str, indent=1), encoding="utf-8")
        return path


def load(path: str | None = None) -> Room:
    """Return the room that was saved in a file; by default in the one that the hub names to its processes."""
    told = json.loads(Path(path or os.environ[VARIABLE]).read_text(encoding="utf-8"))
    for name in ("folder", "root", "proxy"):
        told[name] = Path(told[name])
    return Room(**told | {"names": tuple(told["names"])})


@contextmanager
def held(room: Room) -> Iterator[None]:
    """Keep a room's folder for this hub: a second one would take over the servers of the first, and end them.

    Raises:
        BookError: another hub has it, or there can be no such folder.
    """
    try:
        room.state.mkdir(parents=True, exist_ok=True)
        lock = os.open(room.state / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
    except OSError as error:
        raise BookError(
            f"The room cannot be {room.folder} ({error.strerror}): name a folder that you may write in with --room"
        ) from None
    try:
        _lock(lock, room)
        yield
    finally:
        os.close(lock)


def _lock(lock: int, room: Room) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the system lets go of it however we end
    except BlockingIOError:
        raise BookError(
            f"Another hub runs in the room {room.folder}: end that, or name another folder with --room and another "
            "port with --port"
        ) from None
    except OSError as error:  # a network file system without locks
        raise BookError(
            f"The room {room.folder} cannot be locked ({error.strerror}): name a folder on a local disk with --room"
        ) from None
