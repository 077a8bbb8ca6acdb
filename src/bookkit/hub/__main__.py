"""``python -m bookkit.hub``: a JupyterHub for a room, until Ctrl-C."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from bookkit.errors import BookError
from bookkit.hub import proxy
from bookkit.hub.copies import refresh_original
from bookkit.hub.passwords import make
from bookkit.hub.ports import free, taken
from bookkit.hub.room import VARIABLE, Room
from bookkit.hub.supervise import supervise

ROOT = Path(__file__).parents[3]
ROOM = Path("~/rank-by-rank-room")
AS_ROOT = (
    "You are root, so every learner would be root as well. Start the hub as an ordinary user; in a container that is "
    "thrown away afterwards, HUB=--allow-root goes on all the same"
)


def read_arguments(arguments: list[str] | None = None) -> Room:
    """Return the room that the command line asks for.

    Raises:
        BookError: it cannot be, in a sentence.
    """
    parser = argparse.ArgumentParser(prog="make hub", description="A JupyterHub for a room; see book/teaching/hub.md.")
    add = parser.add_argument
    add("--room", type=Path, default=ROOM, help=f"the folder of homes and passwords (default: {ROOM})")
    add("--names", type=Path, help="a file with the learners' names, one a line; else any name may log in")
    add("--instructor", default="instructor", help="who sees the instructor's page (default: instructor)")
    add("--address", default="127.0.0.1", help="where to listen; 0.0.0.0 for the whole room (default: 127.0.0.1)")
    add("--port", type=int, default=8000, help="(default: 8000; 0 takes a free one)")
    add("--memory", type=float, default=4, help="GB of private memory for each process of a learner (default: 4)")
    add("--cores", type=int, default=0, help="processors for each learner (default: 0, all)")
    add("--processes", type=int, default=2000, help="processes and threads for each learner (default: 2000)")
    add("--idle", type=float, default=60, help="minutes until an unused server is ended (default: 60)")
    add("--prepare", action="store_true", help="install the proxy and stop, for an image of a container")
    add("--allow-root", action="store_true", help="run as root all the same")
    told = parser.parse_args(arguments)
    if told.prepare:
        proxy.install(ROOT / "_build" / "hub")
        parser.exit(message="The hub has what it needs.\n")
    if os.geteuid() == 0 and not told.allow_root:
        raise BookError(AS_ROOT)
    hub_port, proxy_port, board_port, own_port = free(4)
    return Room(
        folder=told.room.expanduser().resolve(),
        root=ROOT,
        proxy=ROOT / "_build" / "hub" / proxy.PROGRAM,
        names=read_names(told.names) if told.names else (),
        instructor=told.instructor,
        address=told.address,
        port=told.port or own_port,
        memory=told.memory,
        cores=told.cores,
        processes=told.processes,
        idle=told.idle,
        as_root=os.geteuid() == 0,
        hub_port=hub_port,
        proxy_port=proxy_port,
        board_port=board_port,
    )


def read_names(path: Path) -> tuple[str, ...]:
    """Return the names in a file, one a line; what follows # is a remark.

    Raises:
        BookError: there is no such file, or a name that cannot be one.
    """
    import re

    from bookkit.hub.configuration import NAME

    try:
        lines = path.expanduser().read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BookError(f"{path} with the learners' names cannot be read: {error.strerror}") from None
    names = [name for line in lines if (name := line.partition("#")[0].strip().lower())]
    for name in names:
        if not re.match(NAME, name):
            raise BookError(
                f"{name!r} in {path} cannot be a name: a letter, then letters, digits and hyphens, 31 at most"
            )
    return tuple(names)


def main() -> int:
    """Prepare the room, say where it is, and run it until Ctrl-C."""
    try:
        room = read_arguments()
        if taken(room.address, room.port):
            raise BookError(f"Somebody listens on port {room.port} already: end that, or name another with --port")
        proxy.install(ROOT / "_build" / "hub")
        room.folder.mkdir(parents=True, exist_ok=True)
        refresh_original(room)
        make(room.passwords)
        os.environ[VARIABLE] = str(room.save())
    except BookError as error:
        print(error, file=sys.stderr)
        return 1
    where = f"http://{room.address}:{room.port}"
    print(f"The room is {where} as soon as JupyterHub is up; Ctrl-C ends it, with all that learners run.")
    print(f"Its password and yours ({room.instructor}): {room.passwords}")
    print(f"Your page: {where}/services/board/   Learners' files: {room.learners}", flush=True)
    return supervise(room)


if __name__ == "__main__":
    sys.exit(main())
