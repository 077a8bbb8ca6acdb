"""What the fork server imports before it forks ranks: torch, the engine, and all that an engine imports later."""

from __future__ import annotations

import importlib
import os
import sys
import threading

# What a rank imports while it starts, beyond torch and the engine: imported here, it is imported once.
PRELOAD = (
    "numpy.random",
    "torch",
    "torch.distributed",
    "ipyparallel.engine.app",
    "ipyparallel.engine.kernel",
    "ipyparallel.serialize",
    "ipykernel.kernelapp",
    "ipykernel.zmqshell",
    "IPython.core.completer",
    "IPython.core.completerlib",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "sqlite3",
    "encodings.idna",
    "tornado.locks",
    "tornado.platform.asyncio",
    "zmq.asyncio",
    "ranklab.rank.engine",
    "ranklab.rank.forked",
)


def preload() -> dict:
    """Import what ranks need.

    Returns:
        ``torch``: its version; ``threads``: how many this process has now; ``cuda``: whether CUDA was initialised.
        A fork is safe where there is one thread and no CUDA.
    """
    os.environ["OMP_NUM_THREADS"] = "1"  # OpenBLAS would start its threads while numpy is imported
    for name in PRELOAD:
        importlib.import_module(name)
    torch = sys.modules["torch"]
    return {
        "torch": torch.__version__,
        "threads": _threads(),
        "cuda": torch.cuda.is_initialized(),
    }


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:  # no /proc: count what Python knows of
        return threading.active_count()
