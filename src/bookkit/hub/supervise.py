"""Start the proxy, the instructor's page and JupyterHub, and end them together.

JupyterHub would start the other two itself, but gives each ten seconds, which a busy machine can exceed; then it ends,
and leaves the proxy behind. Here they have as long as they need, and nothing outlives this process.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from bookkit.errors import BookError
from bookkit.hub.left import end_left, learners
from bookkit.hub.room import BOARD, BOARD_TOKEN, Room

PATIENCE = 300.0  # seconds until a part has to answer
GRACE = 120.0  # seconds that JupyterHub has to end what learners run
PR_SET_PDEATHSIG = 1
PROXY_TOKEN = "CONFIGPROXY_AUTH_TOKEN"


def supervise(room: Room) -> int:
    """Run a room until it is told to end, and return the exit status.

    Raises:
        BookError: the proxy does not start.
    """
    environment = {**os.environ, PROXY_TOKEN: secrets.token_hex(32), BOARD_TOKEN: secrets.token_hex(32)}
    page = [sys.executable, "-m", "bookkit.hub.board"]
    with (
        _started(proxy_command(room), environment, room) as proxy,
        _started(page, environment | board_variables(room, environment[BOARD_TOKEN]), room) as board,
    ):
        try:
            _await("proxy", proxy, room.proxy_port)
            _await("instructor's page", board, room.board_port)
            config = Path(__file__).with_name("jupyterhub_config.py")
            command = [sys.executable, "-m", "jupyterhub", "--config", str(config)]
            try:
                with _started(command, environment, room) as hub:
                    return _run(hub)
            finally:
                end_left(room, learners(room))
        except KeyboardInterrupt:
            return 0
        finally:
            proxy.terminate()
            board.terminate()


def proxy_command(room: Room) -> list[str]:
    """Return what starts the proxy of a room."""
    words = ["node", str(room.proxy), "--ip", room.address, "--port", str(room.port), "--log-level", "warn"]
    words += ["--api-ip", "127.0.0.1", "--api-port", str(room.proxy_port)]
    return [*words, "--error-target", f"http://127.0.0.1:{room.hub_port}/hub/error"]


def board_variables(room: Room, token: str) -> dict[str, str]:
    """Return what JupyterHub would tell the service of the instructor's page, had it started it."""
    prefix = f"/services/{BOARD}/"
    return {
        "JUPYTERHUB_API_TOKEN": token,
        "JUPYTERHUB_API_URL": f"http://127.0.0.1:{room.hub_port}/hub/api",
        "JUPYTERHUB_BASE_URL": "/",
        "JUPYTERHUB_CLIENT_ID": f"service-{BOARD}",
        "JUPYTERHUB_HOST": "",
        "JUPYTERHUB_OAUTH_ACCESS_SCOPES": f'["access:services!service={BOARD}"]',
        "JUPYTERHUB_OAUTH_CALLBACK_URL": f"{prefix}oauth_callback",
        "JUPYTERHUB_SERVICE_NAME": BOARD,
        "JUPYTERHUB_SERVICE_PREFIX": prefix,
        "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{room.board_port}{prefix}",
    }


def _started(command: list[str], environment: dict[str, str], room: Room) -> subprocess.Popen:
    """Start a program in a session of its own: Ctrl-C reaches this process, which ends the others in order."""
    return subprocess.Popen(
        command, env=environment, cwd=room.state, start_new_session=True, preexec_fn=_end_with_parent
    )


def _end_with_parent() -> None:
    """Ask the system to end this process when its parent is gone, where the system knows how."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _await(name: str, part: subprocess.Popen, port: int) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and part.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise BookError(f"The {name} did not start; the lines above say why")


def _run(hub: subprocess.Popen) -> int:
    """Wait for JupyterHub; ask it once to end, when we are asked, and insist after ``GRACE``."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        return hub.wait()
    except KeyboardInterrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # once is enough
        print("Ending what learners run …", flush=True)
        hub.send_signal(signal.SIGTERM)
        try:
            hub.wait(GRACE)
        except subprocess.TimeoutExpired:
            hub.kill()
        return 0
