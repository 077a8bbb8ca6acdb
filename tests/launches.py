"""What the tests of torchrun share: small programs, and the processes of one launch."""

import contextlib
import os
import threading
import uuid
from pathlib import Path

import psutil
from support import eventually

HELLO = """
import os
import torch
import torch.distributed as dist
dist.init_process_group()
total = torch.tensor(dist.get_rank())
dist.all_reduce(total)
print(dist.get_rank(), "of", dist.get_world_size(), "local", os.environ["LOCAL_RANK"], "sum", total.item())
dist.destroy_process_group()
"""
WAIT = """
import os, pathlib, signal
pathlib.Path(os.environ["HERE"], os.environ["RANK"]).touch()
{then}
signal.pause()
"""


def program(folder: Path, text: str, name: str = "program.py") -> str:
    """Write a program and return its path."""
    path = folder / name
    path.write_text(text)
    return str(path)


def waiting(folder: Path, then: str = "") -> dict:
    """Return arguments of torchrun for a program whose ranks say that they run and then wait for ever."""
    return {"script": program(folder, WAIT.format(then=then)), "env": {"HERE": folder}}


def appeared(folder: Path, ranks: int, seconds: float = 300) -> bool:
    """Wait until so many ranks of :func:`waiting` run."""
    return eventually(lambda: all((folder / str(rank)).exists() for rank in range(ranks)), seconds)


def when_running(folder: Path, ranks: int, act) -> threading.Thread:
    """Do something in a thread as soon as the ranks run."""

    def watch():
        if appeared(folder, ranks):
            act()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def marked(name: str, value: str) -> list[psutil.Process]:
    """Return the processes that run with this variable in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(name) == value and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return [process for process in found if process.pid != os.getpid()]


def left_running(name: str, value: str) -> str:
    """Say what runs with this variable in its environment, and should have ended."""
    commands = []
    for process in marked(name, value):
        with contextlib.suppress(psutil.NoSuchProcess):
            commands.append(" ".join(process.cmdline()))
    return "\n".join(["a program has left something running:", *commands])


def mark() -> str:
    """Return a name that no other launch has."""
    return uuid.uuid4().hex
