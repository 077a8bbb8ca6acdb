"""What the driver asks of an idle rank. Runs inside a rank."""

from __future__ import annotations

import os
import sys
from typing import Any

from .meeting import open_store, watch_cells


def greet() -> int:
    """Answer the first question of the notebook: which rank is this?

    By now all connections to the notebook stand, so the watchdog learns which ones never to cut.
    """
    from IPython import get_ipython

    shell = get_ipython()
    shell.watchdog.settle()
    open_store()
    watch_cells(shell)
    return int(os.environ["RANK"])


def leave_group(master_port: int) -> bool:
    """Destroy this rank's process group, if it has one, so that ``dist.init_process_group()`` works again.

    Args:
        master_port: where the next group meets.

    Returns:
        Whether there was a group to leave.
    """
    os.environ["MASTER_PORT"] = str(master_port)
    dist = sys.modules.get("torch.distributed")
    member = dist is not None and dist.is_available() and dist.is_initialized()
    if member:
        dist.destroy_process_group()
    open_store()
    return member


def read_variable(name: str) -> tuple[bool, Any]:
    """Return whether the reader's variable exists on this rank, and its value."""
    from IPython import get_ipython

    variables = get_ipython().user_ns
    return name in variables, variables.get(name)
