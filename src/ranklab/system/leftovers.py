"""What an earlier crash has left: processes of ours whose notebook has gone, and their folders.

Usually nothing: whatever we start ends itself when its owner has gone (:mod:`.deadman`). A process that was
stopped, or killed together with everything that would have cleaned up after it, cannot.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Collection
from pathlib import Path

import psutil

from .deadman import HOME, OWNER

PREFIX = "ranklab-"
OWNER_FILE = "owner"
GPU_FILE = re.compile(r"/dev/nvidia\d+")


def make_home() -> Path:
    """Make a private folder for a world of this process, and note whose it is.

    The note names this machine, so it is never shown.

    Raises:
        OSError: there is no folder for temporary files that can be written to.
    """
    home = Path(tempfile.mkdtemp(prefix=PREFIX))
    (home / OWNER_FILE).write_text("\n".join([str(os.getpid()), *_here()]))
    return home


def processes() -> list[psutil.Process]:
    """Return this user's processes that ranklab has started for a notebook which has gone."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # another user's, or just gone
            if _is_ours(process) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def on_gpus(pids: Collection[int]) -> tuple[list[psutil.Process], list[psutil.Process]]:
    """Return this user's processes of ranklab that use a GPU: those whose notebook has gone, and those that are in use.

    Args:
        pids: the processes that the driver names. In a container their numbers may be those of the machine outside, so
            a process that has a GPU open is found as well.
    """
    gone = processes()
    alive = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # another user's, or just gone
            if HOME in process.environ() and process not in gone and _uses_gpu(process.pid, pids):
                alive.append(process)
    return [process for process in gone if _uses_gpu(process.pid, pids)], alive


def _uses_gpu(pid: int, pids: Collection[int]) -> bool:
    if pid in pids:
        return True
    try:
        return any(GPU_FILE.fullmatch(os.readlink(entry)) for entry in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # not Linux, another user's, or a file that was closed just now
        return False


def folders() -> list[Path]:
    """Return the private folders of notebooks that have gone."""
    return [home for home in Path(tempfile.gettempdir()).glob(f"{PREFIX}*") if _was_left(home)]


def clean() -> int:
    """End such processes and remove such folders.

    Returns:
        How many processes were ended.
    """
    left, homes = processes(), set[Path]()
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            # It may have been about to remove its folder, which need not be where ours are. While it becomes another
            # program, it has no environment.
            homes.add(Path(process.environ().get(HOME, "")))
            process.kill()
    psutil.wait_procs(left, timeout=2)
    for home in {*folders(), *filter(_was_left, homes)}:
        shutil.rmtree(home, ignore_errors=True)
    return len(left)


def _was_left(home: Path) -> bool:
    """Say whether a folder is private to a notebook of this machine that has gone."""
    try:
        owner, *where = (home / OWNER_FILE).read_text().split("\n")
    except (OSError, UnicodeDecodeError):  # not ours, or of another user
        return False
    ours = home.name.startswith(PREFIX) and where == _here()
    return ours and owner.isdigit() and not _runs(int(owner))


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:  # another user's
        return True


def _here() -> list[str]:
    """Say where a process id of ours means something: this machine, and in it this container."""
    # A folder for temporary files can be shared with either, and their notebooks' numbers mean nothing here.
    return [socket.gethostname(), _numbering("self")]


def _numbering(process: int | str) -> str:
    """Return the namespace that a process's ids belong to: one container's, one host's of a lab; "" if not Linux."""
    try:
        return os.readlink(f"/proc/{process}/ns/pid")
    except OSError:  # not Linux, another user's, or it has just ended
        return ""


def _is_ours(process: psutil.Process) -> bool:
    environment = process.environ()
    if HOME not in environment or not environment.get(OWNER, "").isdigit():
        return False
    if _numbering(process.pid) != _numbering("self"):
        return False  # seen from outside its container, where its owner's number is another process's, or nobody's
    try:
        owner = psutil.Process(int(environment[OWNER]))
        # A younger process only has the number of the one that has gone.
        return owner.create_time() > process.create_time() or owner.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
