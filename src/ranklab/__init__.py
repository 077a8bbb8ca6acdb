"""ranklab: PyTorch ranks in notebook cells.

It removes what is not the lesson (processes, ports, the order of prints, shutdown, hangs) and wraps nothing of
torch: what stands in ``%%px`` cells, joined, is a program that torchrun runs unchanged.

    import ranklab
    world = ranklab.start(4)

Importing this module is cheap: neither torch nor ipyparallel is loaded before ranks start.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .errors import RankError, RanklabError, RankTimeout, WorldError
from .figures import node_map, timeline
from .rank import device
from .torchrun import torchrun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .world import World

__all__ = [
    "RankError",
    "RankTimeout",
    "RanklabError",
    "WorldError",
    "check",
    "device",
    "node_map",
    "start",
    "timeline",
    "torchrun",
]


def start(
    size: int | None = None,
    *,
    nodes: Sequence[int] | None = None,
    timeout: float = 60.0,
    launcher: str | None = None,
    engines: str | None = None,
    **elsewhere: Any,
) -> World:
    """Start ranks on this machine; see :func:`ranklab.world.start`, which this loads on first use."""
    from .world import start as start_world

    return start_world(size, nodes=nodes, timeout=timeout, launcher=launcher, engines=engines, **elsewhere)


def __getattr__(name: str):
    """Load the graders when they are first used: they need ipyparallel, which ``import ranklab`` does not load."""
    if name == "check":
        import importlib

        return importlib.import_module(".check", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _px_before_start(line: str = "", cell: str = "") -> None:
    """Stand in for ``%%px`` until ranks run."""
    from .world import current

    current()


def _register_px_before_start() -> None:
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    if shell is not None and "px" not in shell.magics_manager.magics["cell"]:
        shell.register_magic_function(_px_before_start, "cell", "px")
        shell.register_magic_function(_px_before_start, "line", "px")


_register_px_before_start()
