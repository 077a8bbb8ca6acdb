"""What torch sees of this machine's GPUs; asked in a process of its own, so that ours holds no GPU memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from .trial import finish

SECONDS = 40.0  # a first start of CUDA after a boot takes several


@dataclass(frozen=True)
class Seen:
    """What torch says of GPUs.

    Attributes:
        torch: its version.
        cuda: the CUDA that it was built with, "" where it was built for CPUs alone.
        driver: the newest CUDA that the driver knows, "" where there is no driver.
        library: the version of the library that its backend for GPUs talks through, "" where it has none.
        names: of the GPUs that it sees, in order.
        apart: pairs of GPUs that cannot reach each other's memory.
        problem: why it cannot compute on one of them, one clause; "" where it can on each.
        busy: whether the problem is that other programs took the processors.
    """

    torch: str = ""
    cuda: str = ""
    driver: str = ""
    library: str = ""
    names: tuple[str, ...] = ()
    apart: tuple[tuple[int, int], ...] = ()
    problem: str = ""
    busy: bool = False


def look(seconds: float = SECONDS) -> Seen:
    """Ask torch; a torch that cannot be asked is a problem as well.

    Args:
        seconds: how long it may take, as :func:`ranklab.system.trial.finish` counts them.
    """
    command = [sys.executable, "-m", "ranklab.rank.cards"]
    with tempfile.TemporaryFile("w+") as printed:
        child = subprocess.Popen(command, stdout=printed, stderr=subprocess.PIPE, text=True)
        trial = finish([child], seconds)
        if trial.problem:
            return Seen(problem=trial.problem.rstrip("."), busy=trial.busy)
        printed.seek(0)
        told = json.loads(printed.read().strip().splitlines()[-1])  # torch may have printed something before
    return Seen(**told | {"names": tuple(told["names"]), "apart": tuple(map(tuple, told["apart"]))})
