"""The programs, a module for each kind of trouble. Each function is what one rank does."""

import importlib
import os
from datetime import timedelta
from pathlib import Path

import torch._dynamo  # noqa: F401  DDP imports it late, and each fork would do it anew
import torch.distributed as dist


def load():
    """Import all programs, and what they use, before the first fork."""
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        importlib.import_module(f"{__name__}.{path.stem}")


def meet(seconds=120, backend="gloo"):
    """Make the process group of this program's ranks, who meet at a file."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        backend,
        init_method=f"file://{os.getcwd()}/meeting",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=timedelta(seconds=seconds),
    )
    dist.barrier()


def wait_at_most(seconds):
    """Give every operation of the group so long, from now on; the meeting took its own time."""
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=seconds))


def detail():
    """Have torch compare the calls of all ranks, as TORCH_DISTRIBUTED_DEBUG=DETAIL does."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
