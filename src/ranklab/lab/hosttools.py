"""The ordinary tools that hosts are made with: where they are, what they need, what they said when they failed.

``ip``, ``tc``, ``nsenter`` and ``unshare`` do the work; a reader can type the same commands.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from ..errors import NoHosts, RanklabError
from ..programs import lacking, search_path

PATIENCE = 20.0  # seconds; each of these commands takes milliseconds


def check_tools() -> None:
    """See that everything is there that hosts are made with.

    Raises:
        NoHosts: a sentence that names what is missing and its package.
    """
    if not sys.platform.startswith("linux"):
        raise NoHosts(f"Hosts of their own need Linux, and this is {sys.platform}.", "use a virtual machine with Linux")
    if missing := [program for program in lacking() if program.tag == "needs-hosts"]:
        packages = sorted({program.package for program in missing})
        names = ", ".join(program.name for program in missing)
        raise NoHosts(f"Hosts need {names}.", f"sudo apt install {' '.join(packages)}")


def run_tool(command: Sequence[str], lines: Sequence[str] = ()) -> str:
    """Run one of the tools to its end.

    Args:
        command: the tool and its arguments.
        lines: what it reads from its standard input.

    Returns:
        What it printed.

    Raises:
        RanklabError: the command and what it said.
    """
    environment = {**os.environ, "PATH": search_path(dict(os.environ)), "LC_ALL": "C"}
    text = "".join(f"{line}\n" for line in lines)
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RanklabError(f"`{' '.join(command[-4:])}` did not end within {PATIENCE:g} s.") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if not line.startswith("Command failed")]
        raise RanklabError(f"`{' '.join(command[-4:])}` failed: {' '.join(said).strip() or done.returncode}")
    return done.stdout


def hear(stdout: IO[bytes]) -> tuple[dict[str, Any], list[str]]:
    """Wait for the report of a lab's holder, see :mod:`.holder`.

    Args:
        stdout: what the holder prints, its errors among it.

    Returns:
        The report, empty where it ended without one; and the lines before it. They need not be bad news: the system's
        loader and Python complain there, too, of variables that they then ignore.

    Raises:
        NoHosts: it has not reported in time.
    """
    report, heard, deadline = select.poll(), b"", time.monotonic() + PATIENCE  # select() takes no descriptor above 1023
    report.register(stdout, select.POLLIN)
    while report.poll(max(0.0, deadline - time.monotonic()) * 1000):
        part = os.read(stdout.fileno(), 1 << 16)
        heard += part
        lines = heard.decode(errors="replace").splitlines(keepends=True)
        for number, line in enumerate(lines):
            if line.startswith('{"') and line.endswith("\n"):
                return json.loads(line), [other.strip() for other in lines[:number]]
        if not part:
            return {}, [line.strip() for line in lines]
    raise NoHosts(f"The hosts were not ready within {PATIENCE:g} s: this machine is too busy. Try again.")


def refused(said: Sequence[str]) -> NoHosts:
    """Say why there are no hosts.

    Args:
        said: the lines that were printed instead.
    """
    if by_unshare := [line for line in said if line.startswith("unshare: ")]:
        return forbidden(by_unshare[0])
    told = " ".join(filter(None, said[-3:])) or "it said nothing"
    return NoHosts(f"The program that holds the hosts ended before they were ready: {told}.")


def forbidden(said: str) -> NoHosts:
    """Say why this machine gives no namespaces, and how to allow them.

    Args:
        said: what ``unshare`` said.
    """
    if os.geteuid() == 0:
        fix = "in a container, start it with --privileged"
    elif _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        fix = "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    elif _setting("kernel/unprivileged_userns_clone") == "0":
        fix = "sudo sysctl kernel.unprivileged_userns_clone=1"
    elif _setting("user/max_user_namespaces") == "0":
        fix = "sudo sysctl user.max_user_namespaces=10000"
    else:
        fix = "start Jupyter as root, or in a container started with --privileged"
    return NoHosts(f"This machine allows no network namespaces ({said.removeprefix('unshare: ')}).", fix)


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:  # this kernel has no such setting
        return ""
