"""The process that holds the hosts of a lab: they exist as long as it does.

Run as ``python -m ranklab.lab.holder NAME…`` inside the network namespace that is the switch between the hosts (and,
for who is not root, inside a user namespace). For every name it starts a host: a process with a network, a host name,
mounts and process ids of its own, which waits on a pipe that nobody else can write to. Whatever ends the holder, also
``kill -9``, closes the pipes; the first process of each host then ends, and the kernel ends everything that was
started on the host. Namespaces have no names in the file system, so nothing is left and nothing can collide.

It ends when it reads anything, or when its owner has gone, however suddenly. It reports one JSON line on its standard
output: ``{"pids": [the process that leads into each host]}`` or ``{"failed": sentence}``. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys

from ..system.deadman import HOME, OWNER, PERIOD
from ..system.pipes import piped

UNSHARE = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
# The first process of a host. The kernel itself waits for children whose parent ignores SIGCHLD, so processes that
# were orphaned on the host leave no zombies.
FIRST = """
import os, signal, socket, sys
socket.sethostname(sys.argv[1])
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.write(1, b"up\\n")
null = os.open(os.devnull, os.O_WRONLY)
os.dup2(null, 1)
os.dup2(null, 2)
os.execvp("cat", ["cat"])
"""


def start_host(name: str) -> subprocess.Popen:
    """Start a host.

    Args:
        name: the host's name.

    Returns:
        The ``unshare`` process in the host's namespaces; its child is the first process of the host.

    Raises:
        RuntimeError: what ``unshare`` said.
    """
    command = [*UNSHARE, sys.executable, "-I", "-S", "-c", FIRST, name]
    host = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = []
    for line in piped(host.stdout):
        if line == b"up\n":
            return host
        said.append(line.decode(errors="replace").strip())  # the system's loader may complain, and go on
    raise RuntimeError("\n".join(said) or f"unshare ended with status {host.wait()}")


def hold(owner: int) -> bool:
    """Wait until told to end, or the owner has gone; return whether it has gone."""
    while os.getppid() == owner:
        if select.select([0], [], [], PERIOD)[0]:
            return not os.read(0, 512)  # nothing: its end of the pipe was closed for it
    return True


def main() -> int:
    """Start the hosts, report, hold; return the exit status."""
    owner = int(os.environ[OWNER])
    hosts = []
    try:
        for name in sys.argv[1:]:
            hosts.append(start_host(name))
        report: dict[str, object] = {"pids": [host.pid for host in hosts]}
    except (OSError, RuntimeError) as error:
        report = {"failed": str(error)}
    with contextlib.suppress(BrokenPipeError):  # the owner has gone; it is noticed in a moment
        os.write(1, json.dumps(report).encode() + b"\n")
    gone = hold(owner)
    for host in hosts:
        piped(host.stdin).close()
    for host in hosts:  # nobody else may be there who waits for them
        host.wait()
    if gone and (home := os.environ.get(HOME)):
        shutil.rmtree(home, ignore_errors=True)  # the owner can no longer do it
    return 0


if __name__ == "__main__":
    sys.exit(main())
