"""JupyterHub's own settings for a room: who may log in, what starts for each learner, and the two services."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from bookkit.hub.copies import welcome
from bookkit.hub.left import end_left
from bookkit.hub.passwords import read
from bookkit.hub.room import BOARD, BOARD_TOKEN, SHARED, VARIABLE, Room
from bookkit.leash import Brood

PATIENCE = 300  # seconds that a server may take to answer
ROOM_UP = 3600  # seconds until a server was started: thirty learners log in at once, and wait their turn
NAME = r"^[a-z][a-z0-9-]{0,30}$"  # becomes the name of a folder
A_NAME = "one letter from a to z, then letters from a to z, digits and hyphens, 31 characters at most"
FIXED = ["--LabApp.extension_manager=readonly"]  # the other one asks npm and PyPI


def configure(c: Any, room: Room) -> None:
    """Write a room's settings into JupyterHub's.

    Args:
        c: JupyterHub's configuration.
        room: what was asked for.
    """
    c.JupyterHub.bind_url = f"http://{room.address}:{room.port}"
    c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{room.hub_port}"
    c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{room.proxy_port}"
    c.ConfigurableHTTPProxy.should_start = False  # supervise does, and waits longer than JupyterHub's ten seconds
    c.JupyterHub.db_url = "sqlite:///hub.sqlite"  # in room.state, where supervise starts it: a URL cannot say any path
    c.JupyterHub.cookie_secret = os.urandom(32)  # a browser that was logged in to an earlier hub has to log in anew
    c.JupyterHub.concurrent_spawn_limit = 0  # it refuses; our spawner lets wait (turns.py)
    c.JupyterHub.allow_named_servers = False
    c.JupyterHub.shutdown_on_logout = True  # files stay; kernels and ranks go
    c.JupyterHub.log_level = "WARN"
    _log_in(c, room)
    _spawn(c, room)
    _services(c, room)


def _log_in(c: Any, room: Room) -> None:
    passwords = read(room.passwords)
    c.JupyterHub.authenticator_class = "shared-password"
    c.SharedPasswordAuthenticator.user_password = passwords["room"]
    c.SharedPasswordAuthenticator.admin_password = passwords["instructor"]
    c.Authenticator.admin_users = {room.instructor}
    c.Authenticator.username_pattern = NAME
    if room.names:
        c.Authenticator.allowed_users = {*room.names, room.instructor}
        c.Authenticator.allow_existing_users = False  # a name that was taken from the file may not log in again
    else:
        c.Authenticator.allow_all = True


def _spawn(c: Any, room: Room) -> None:
    c.JupyterHub.spawner_class = "bookkit.hub.spawner.RoomSpawner"
    braces = str.maketrans({"{": "{{", "}": "}}"})
    c.SimpleLocalProcessSpawner.home_dir_template = str(room.learners).translate(braces) + "/{username}"
    c.Spawner.default_url = "/lab/tree/book"
    c.Spawner.start_timeout, c.Spawner.http_timeout = ROOM_UP, PATIENCE
    c.Spawner.environment = {
        "PYTHONPATH": str(room.root / "src"),
        "JUPYTER_CONFIG_PATH": str(room.root / "src" / "bookkit" / "jupyter"),
        "RANKLAB_ROOM": lambda spawner: str(room.home(spawner.user.name) / SHARED),
        Brood.MARK: lambda spawner: str(room.home(spawner.user.name)),
    }

    def prepare(spawner: Any) -> None:
        welcome(room, spawner.user.name)
        spawner.cmd = command(room, spawner.user.id)

    async def tidy(spawner: Any) -> None:
        await asyncio.to_thread(end_left, room, [spawner.user.name])

    c.Spawner.pre_spawn_hook = prepare
    c.Spawner.post_stop_hook = tidy
    # A learner may lend the own server to somebody, by name; nobody else can.
    c.JupyterHub.load_roles = [
        {"name": "user", "scopes": ["self", "shares!user", "read:users:name"]},
        {
            "name": "idle-culler",
            "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
            "services": ["idle-culler"],
        },
        {"name": BOARD, "scopes": ["list:users", "read:users:activity", "read:servers"], "services": [BOARD]},
    ]
    c.Spawner.server_token_scopes = [
        "access:servers!server",
        "users:activity!user",
        "shares!user",
        "read:users:name",  # by which a server is lent
    ]


def command(room: Room, place: int) -> list[str]:
    """Return what starts a learner's server.

    Args:
        room: its limits.
        place: the learner's number.
    """
    limits = {"memory": room.memory, "cores": room.cores, "place": place, "processes": processes(room)}
    words = [sys.executable, "-m", "bookkit.hub.limited"]
    words += [word for name, value in limits.items() for word in (f"--{name}", str(value))]
    root = ["--allow-root"] if room.as_root else []
    return [*words, "--", sys.executable, "-m", "jupyterhub.singleuser", "--log-level=WARN", *FIXED, *root]


def processes(room: Room) -> int:
    """Return the limit of processes: the system counts those of a user, and all learners are one user of the system."""
    return room.processes * max(len(room.names) + 1, 12) if room.processes else 0


def _services(c: Any, room: Room) -> None:
    seconds = max(1, round(60 * room.idle))
    environment = {name: os.environ[name] for name in ("PYTHONPATH", VARIABLE) if name in os.environ}
    c.JupyterHub.services = [
        {
            "name": "idle-culler",
            "command": [sys.executable, "-m", "jupyterhub_idle_culler", f"--timeout={seconds}"],
            "environment": environment,
        },
        {
            "name": BOARD,
            "url": f"http://127.0.0.1:{room.board_port}",
            "api_token": os.environ.get(BOARD_TOKEN, ""),  # supervise starts it, for the same reason as the proxy
            "oauth_no_confirm": True,
        },
    ]
