"""What torch sees of this machine's GPUs; asked in a process of its own, so that ours holds no GPU memory."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

SECONDS = 60.0  # a first start of CUDA after a boot takes several, and the machine may be busy


@dataclass(frozen=True)
class Seen:
    """What torch says of GPUs.

    Attributes:
        torch: its version.
        cuda: the CUDA that it was built with, "" where it was built for CPUs alone.
        driver: the newest CUDA that the driver knows, "" where there is no driver or torch cannot ask it.
        library: the version of the library that its backend for GPUs talks through, "" where it has none.
        names: of the GPUs that it sees, in order.
        apart: pairs of GPUs that cannot reach each other's memory.
        problem: why it cannot compute on one of them, one clause; "" where it can on each.
    """

    torch: str = ""
    cuda: str = ""
    driver: str = ""
    library: str = ""
    names: tuple[str, ...] = ()
    apart: tuple[tuple[int, int], ...] = ()
    problem: str = ""


def look(seconds: float = SECONDS) -> Seen:
    """Ask torch; a torch that cannot be asked is a problem as well.

    Args:
        seconds: how long it may take.
    """
    command = [sys.executable, "-m", "ranklab.rank.cards"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return Seen(problem=f"torch did not answer within {seconds:g} s")
    if done.returncode:
        return Seen(problem=" ".join(done.stderr.strip().splitlines()[-1:]) or f"exit status {done.returncode}")
    # Whatever torch prints while it looks comes before our own line.
    told = json.loads(done.stdout.strip().splitlines()[-1])
    return Seen(**told | {"names": tuple(told["names"]), "apart": tuple(map(tuple, told["apart"]))})
