"""Ranks whose environments differ in one variable, a module for each question. Each function is what one rank does."""

import contextlib
import importlib
import os
import socket
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch._dynamo
import torch.distributed as dist

# How long a rank waits that is left alone; on a busy machine its partner may be late.
SECONDS = 3 if os.getloadavg()[0] < 2 * (os.cpu_count() or 1) else 20
PATIENCE = 120  # where the ranks do meet


def load():
    """Import all programs, and what they use, before the first fork."""
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        importlib.import_module(f"{__name__}.{path.stem}")


def say(*words):
    """Print one line, whole and at once."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def common_port(rank):
    """Return a port that all ranks of the program know. Clients get none so low from the system."""
    told = Path("port")
    if rank == 0:
        Path("port.new").write_text(str(20_000 + os.getpid() % 10_000))
        Path("port.new").rename(told)
    while not told.exists():
        time.sleep(0.01)
    return int(told.read_text())


def place(rank, **others):
    """Tell this process where the ranks meet, as torchrun does, and what is different in its environment.

    Args:
        rank: of the program.
        others: further variables; None takes one away.
    """
    ours = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(common_port(rank)), "GLOO_SOCKET_IFNAME": "lo", **others}
    for name, value in ours.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def meet(rank, seconds=PATIENCE, **others):
    """Make the process group from the environment."""
    place(rank, **others)
    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))


def total():
    """Count the ranks with an all_reduce."""
    ones = torch.ones(1)
    dist.all_reduce(ones)
    return f"all_reduce counts {int(ones)} ranks"


def watched(act):
    """Let a further process act for this one, and say which signal has ended it."""
    pid = os.fork()
    if not pid:
        act()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        rank = os.environ["LOCAL_RANK"]
        say(f"process {rank}: ended by signal {-code}")
        Path(f"done-{rank}").touch()


def together(rank, ranks, word):
    """Wait for the other ranks, without torch; for a minute, as one may have died."""
    Path(f"{word}-{rank}").touch()
    late = time.monotonic() + 60
    while not all(Path(f"{word}-{other}").exists() for other in range(ranks)) and time.monotonic() < late:
        time.sleep(0.01)


def opened(port):
    """Wait until somebody listens at a port."""
    late = time.monotonic() + 60
    while time.monotonic() < late:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)


def tell(rank, seconds=SECONDS, later=False, **others):
    """Meet, count the ranks, and print what came of it: the number, or the first line of the error.

    All begin together, and stay until all are done: what one says is not the end of the other.

    Args:
        rank: of the program.
        seconds: the timeout of the group.
        later: whether this rank begins when the port is open.
        others: what differs.
    """
    ranks = int(os.environ["WORLD_SIZE"])
    together(rank, ranks, "begun")
    if later:
        opened(common_port(rank))
    try:
        meet(rank, seconds, **others)
        said = total()
    except Exception as error:
        said = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    say(f"process {rank}: {said}")
    together(rank, ranks, "done")
