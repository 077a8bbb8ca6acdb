"""How a process moves to a host: into the namespaces that another process holds.

Threads have namespaces each of their own in Linux. A rank uses that: what it has opened before it moves, its
connections to the notebook and the threads that serve them, stays in the machine's network, and what its main thread
opens or starts afterwards is the host's. Python has ``os.setns`` from 3.12 on; here the C library is asked.

Standard library only; used by a rank (:mod:`ranklab.rank.forked`, :mod:`ranklab.rank.engine`).
"""

from __future__ import annotations

import ctypes
import os

HOST = "RANKLAB_HOST"  # a process in the host's namespaces, in the environment of a rank that has a host
HOST_ETC = "RANKLAB_HOST_ETC"  # folder of the files that this host has in /etc instead of the machine's
# linux/sched.h and linux/mount.h, linux/prctl.h
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x04000000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 0x80000
PR_SET_DUMPABLE = 4


def enter_user(host: int, etc: str) -> None:
    """Become a user of the host and find its names, as long as this process has one thread.

    Args:
        host: a process in the host's namespaces.
        etc: folder of the files that this process, alone, finds in /etc from now on.

    Raises:
        OSError: the host has gone, or this process has more than one thread.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    # Who has made the hosts without being root owns them through a user namespace, and may enter through it only.
    if _differs(host, "user"):
        _enter(libc, host, "user", CLONE_NEWUSER)
        # With the new rights the kernel closes /proc/self to this user's other processes, the notebook among them.
        _check(libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
    _check(libc.unshare(CLONE_NEWNS))
    _check(libc.mount(None, b"/", None, MS_REC | MS_SLAVE, None))
    for name in os.listdir(etc):
        _check(libc.mount(os.fsencode(f"{etc}/{name}"), os.fsencode(f"/etc/{name}"), None, MS_BIND, None))


def enter_network(host: int) -> None:
    """Take the host's network and name, for this thread and those it will start.

    Args:
        host: a process in the host's namespaces.

    Raises:
        OSError: the host has gone.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _enter(libc, host, "net", CLONE_NEWNET)
    _enter(libc, host, "uts", CLONE_NEWUTS)


def _differs(pid: int, kind: str) -> bool:
    return os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")


def _enter(libc: ctypes.CDLL, pid: int, kind: str, flag: int) -> None:
    namespace = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(libc.setns(namespace, flag))
    finally:
        os.close(namespace)


def _check(status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
