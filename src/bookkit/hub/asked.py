"""What the words behind ``make hub`` ask for: a room, or a sentence that says which word cannot be."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from bookkit.errors import BookError
from bookkit.hub import proxy
from bookkit.hub.configuration import A_NAME, NAME
from bookkit.hub.ports import free
from bookkit.hub.room import Room

ROOT = Path(__file__).parents[3]
ROOM = Path("~/rank-by-rank-room")
AS_ROOT = (
    "You are root, so every learner would be root as well. Start the hub as an ordinary user; in a container that is "
    "thrown away afterwards, HUB=--allow-root goes on all the same"
)
# For each number: the least and the most that it may be, and whether 0, for no limit, may be as well.
RANGES = {
    "port": (0, 65_535, False),
    "memory": (1, 100_000, True),  # torch alone does not start with less
    "cores": (1, 100_000, True),
    "processes": (100, 1_000_000, True),  # a server, a kernel and four ranks with their threads
    "idle": (1, 1_000_000, False),
}


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
    for name in RANGES:
        _check(name, getattr(told, name))
    hub_port, proxy_port, board_port, own_port = free(4)
    return Room(
        folder=told.room.expanduser().resolve(),
        root=ROOT,
        proxy=ROOT / "_build" / "hub" / proxy.PROGRAM,
        names=read_names(told.names) if told.names else (),
        instructor=_name(told.instructor, "--instructor"),
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


def _check(name: str, value: float) -> None:
    least, most, unlimited = RANGES[name]
    if not (least <= value <= most or (unlimited and value == 0)):
        zero = ", or 0 for no limit" if unlimited else ""
        raise BookError(f"--{name} {value:g} cannot be: it takes a number from {least} to {most}{zero}")


def read_names(path: Path) -> tuple[str, ...]:
    """Return the names in a file, one a line; what follows # is a remark.

    Raises:
        BookError: there is no such file, no name in it, or a name that cannot be one.
    """
    try:
        lines = path.expanduser().read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise BookError(f"{path} with the learners' names cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BookError(f"{path} with the learners' names is not in UTF-8: save it as UTF-8 in your editor") from None
    names = tuple(_name(line, path) for line in (line.partition("#")[0] for line in lines) if line.strip())
    if not names:
        raise BookError(f"There is no name in {path}: write one a line, or leave out --names to let any name log in")
    return names


def _name(text: str, where: object) -> str:
    """The name as JupyterHub has it, in small letters.

    Raises:
        BookError: it cannot be one.
    """
    name = text.strip().lower()
    if not re.match(NAME, name):
        raise BookError(f"{name!r} in {where} cannot be a name: it takes {A_NAME}")
    return name
