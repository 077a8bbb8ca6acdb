"""Start the proxy and JupyterHub, and end both together.

JupyterHub would start the proxy itself, but gives it ten seconds, which a busy machine can exceed, and leaves it behind
then. Here it has as long as it needs, and neither outlives this process.
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
from bookkit.hub.room import Room

PATIENCE = 180.0  # seconds until the proxy has to answer
GRACE = 120.0  # seconds that JupyterHub has to end what learners run
PR_SET_PDEATHSIG = 1
TOKEN = "CONFIGPROXY_AUTH_TOKEN"


def supervise(room: Room) -> int:
    """Run a room until it is told to end, and return the exit status.

    Raises:
        BookError: the proxy does not start.
    """
    environment = {**os.environ, TOKEN: secrets.token_hex(32)}
    with _started(proxy_command(room), environment, room) as proxy:
        try:
            _await_proxy(proxy, room)
            config = Path(__file__).with_name("jupyterhub_config.py")
            command = [sys.executable, "-m", "jupyterhub", "--config", str(config)]
            with _started(command, environment, room) as hub:
                return _run(hub)
        except KeyboardInterrupt:
            return 0
        finally:
            proxy.terminate()


def proxy_command(room: Room) -> list[str]:
    """Return what starts the proxy of a room."""
    words = ["node", str(room.proxy), "--ip", room.address, "--port", str(room.port), "--log-level", "warn"]
    words += ["--api-ip", "127.0.0.1", "--api-port", str(room.proxy_port)]
    return [*words, "--error-target", f"http://127.0.0.1:{room.hub_port}/hub/error"]


def _started(command: list[str], environment: dict[str, str], room: Room) -> subprocess.Popen:
    """Start a program in a session of its own: Ctrl-C reaches this process, which ends the others in order."""
    return subprocess.Popen(
        command, env=environment, cwd=room.state, start_new_session=True, preexec_fn=_end_with_parent
    )


def _end_with_parent() -> None:
    """Ask the system to end this process when its parent is gone, where the system knows how."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _await_proxy(proxy: subprocess.Popen, room: Room) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and proxy.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", room.proxy_port), timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise BookError("The proxy did not start; the lines above say why")


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
