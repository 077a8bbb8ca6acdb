"""What the tests of hosts share: programs that make hosts, and looks at what is left of them."""

import contextlib
import functools
import itertools
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
from support import eventually

import ranklab
from ranklab.errors import NoHosts
from ranklab.system.leftovers import PREFIX

MARK = "RANKLAB_TEST_MARK"
KINDS = "net", "mnt"  # of namespaces
# What runs after it finds a machine that gives no namespaces, whoever asks.
FORBID_SCRIPT = 'echo 0 >/proc/sys/user/max_net_namespaces; echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"'
FORBIDDEN = ["unshare", "--user", "--map-root-user", "sh", "-c", FORBID_SCRIPT, "sh"]


@functools.cache
def why_not() -> str:
    """Return why this machine allows no hosts, "" where it does."""
    try:
        ranklab.hosts(2).stop()
    except NoHosts as why:
        return str(why)
    return ""


def marked(mark: str) -> list[psutil.Process]:
    """Return the processes that run with this mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@contextlib.contextmanager
def spaces(processes: list[psutil.Process]) -> Iterator[set[str]]:
    """Give the network and mount namespaces of processes that are not this one's.

    Meanwhile they are held open: the kernel gives the number of one that has gone to the next one that somebody makes.
    """
    own = {os.readlink(f"/proc/self/ns/{kind}") for kind in KINDS}
    found = set()
    with contextlib.ExitStack() as held:
        for process, kind in itertools.product(processes, KINDS):
            with contextlib.suppress(OSError):
                opened = held.enter_context(open(f"/proc/{process.pid}/ns/{kind}"))
                found.add(os.readlink(f"/proc/self/fd/{opened.fileno()}"))
        yield found - own


def holders(of: set[str]) -> list[int]:
    """Return the processes that are in one of these namespaces."""
    found = []
    for name, kind in itertools.product(filter(str.isdigit, os.listdir("/proc")), KINDS):
        try:
            if os.readlink(f"/proc/{name}/ns/{kind}") in of and psutil.Process(int(name)).status() != "zombie":
                found.append(int(name))
        except (OSError, psutil.NoSuchProcess):
            continue
    return found


def machine() -> tuple[str, str]:
    """Return the interfaces and the mounts of this machine, as this process sees them."""
    interfaces = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return interfaces, Path("/proc/self/mounts").read_text()


def left(mark: str, of: set[str], folder: Path) -> list[str]:
    """Wait until nothing of a marked program is left; return what is, in words."""

    def found() -> list[str]:
        pids = [*(process.pid for process in marked(mark)), *holders(of)]
        return [*map(state, pids), *(str(path) for path in folder.glob(f"{PREFIX}*"))]

    eventually(lambda: not found(), 300)
    return found()


def state(pid: int) -> str:
    """Say what a process is and what it waits for."""
    try:
        process = psutil.Process(pid)
        status, waits = process.status(), Path(f"/proc/{pid}/wchan").read_text()
        return f"{pid} of {process.ppid()}, {status} in {waits}: {' '.join(process.cmdline())}"
    except (OSError, psutil.Error) as ended:
        return repr(ended)


def program(text: str, mark: str, folder: Path, user: list[str], **options) -> subprocess.Popen:
    """Start a program that makes hosts, with a temporary folder of its own."""
    folder.chmod(0o1777)
    environment = {**os.environ, MARK: mark, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*user, sys.executable, "-c", textwrap.dedent(text)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **options)
