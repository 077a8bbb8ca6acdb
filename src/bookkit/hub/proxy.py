"""The proxy in front of the hub: ``configurable-http-proxy`` from npm, in a folder of its own below ``_build``."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from bookkit.errors import BookError

HERE = Path(__file__).parent
LOCK, STAMP = "package-lock.json", "installed-from-lock"
PROGRAM = Path("node_modules", "configurable-http-proxy", "bin", "configurable-http-proxy")
GET_NODE = (
    "JupyterHub's proxy needs Node {oldest} or newer, with npm. On Debian and Ubuntu: sudo apt-get install nodejs npm; "
    "elsewhere https://nodejs.org has them. Then type make hub again"
)


def install(folder: Path) -> Path:
    """Bring the pinned proxy into ``folder``, where it is not there already, and return its program.

    Raises:
        BookError: there is no Node, an old one, or npm could not install it.
    """
    check_node()
    program, stamp, lock = folder / PROGRAM, folder / STAMP, (HERE / LOCK).read_bytes()
    if program.exists() and stamp.exists() and stamp.read_bytes() == lock:
        return program
    print(f"Installing the proxy into {folder}; this takes a minute", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("package.json", LOCK):
        shutil.copy(HERE / name, folder)
    command = ["npm", "ci", "--omit=dev", "--no-fund", "--no-audit", "--ignore-scripts", "--loglevel=error"]
    if subprocess.call(command, cwd=folder):
        raise BookError("npm could not install JupyterHub's proxy; its last lines say why. Type make hub again")
    stamp.write_bytes(lock)  # last, so that an installation that was cut short begins again
    return program


def check_node() -> None:
    """Refuse, in a sentence, where Node or npm is missing or too old.

    Raises:
        BookError: that sentence.
    """
    oldest = int(re.sub(r"\D", "", json.loads((HERE / "package.json").read_text(encoding="utf-8"))["engines"]["node"]))
    if not shutil.which("node") or not shutil.which("npm"):
        raise BookError(
            f"There is no {'node' if not shutil.which('node') else 'npm'}. {GET_NODE.format(oldest=oldest)}"
        )
    said = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    number = re.match(r"v(\d+)", said)
    if not number or int(number[1]) < oldest:
        raise BookError(f"Node is {said or 'silent'}. {GET_NODE.format(oldest=oldest)}")
