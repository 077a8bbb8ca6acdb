"""``python -m bookkit.hub``: a JupyterHub for a room, until Ctrl-C."""

from __future__ import annotations

import os
import sys

from bookkit.errors import BookError
from bookkit.hub import proxy
from bookkit.hub.asked import ROOT, read_arguments
from bookkit.hub.configuration import A_NAME
from bookkit.hub.copies import refresh_original
from bookkit.hub.passwords import make
from bookkit.hub.ports import taken
from bookkit.hub.room import VARIABLE, Room, held
from bookkit.hub.supervise import supervise

TAKEN = (
    "Somebody listens on port {port} already: end that, or name another with --port. A second hub needs a room of its "
    "own as well, which --room names"
)


def main() -> int:
    """Prepare the room, say where it is, and run it until Ctrl-C."""
    try:
        room = read_arguments()
        if taken(room.address, room.port):
            raise BookError(TAKEN.format(port=room.port))
        proxy.install(ROOT / "_build" / "hub")
        with held(room):
            prepare(room)
            announce(room)
            return supervise(room)
    except BookError as error:
        print(error, file=sys.stderr)
        return 1


def prepare(room: Room) -> None:
    """Bring what the hub needs into the room's folder.

    Raises:
        BookError: it cannot be written there.
    """
    try:
        refresh_original(room)
        make(room.passwords)
        os.environ[VARIABLE] = str(room.save())
    except OSError as error:
        raise BookError(f"The room {room.folder} cannot be prepared: {error}") from error


def announce(room: Room) -> None:
    """Say where the room is, who may come in, and how it ends."""
    where = f"http://{room.address}:{room.port}"
    print(f"The room is {where} as soon as JupyterHub is up; Ctrl-C ends it, with all that learners run.")
    print(f"Its password and yours ({room.instructor}): {room.passwords}")
    print(f"Who may log in: {', '.join(room.names) or f'any name of {A_NAME}'}")
    print(f"Your page: {where}/services/board/   Learners' files: {room.learners}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
