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
from .figures import node_map, owners, timeline
from .launch.torchrun import torchrun
from .measured import measured
from .rank.device import device
from .rank.meter import meter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .lab.lab import Lab
    from .world import World

__all__ = [
    "RankError",
    "RankTimeout",
    "RanklabError",
    "WorldError",
    "check",
    "device",
    "hosts",
    "measured",
    "meter",
    "node_map",
    "owners",
    "start",
    "timeline",
    "torchrun",
]


def start(
    size: int | None = None,
    *,
    nodes: Sequence[int] | None = None,
    link: str | None = None,
    delay: str = "0ms",
    timeout: float = 60.0,
    launcher: str | None = None,
    engines: str | None = None,
    **elsewhere: Any,
) -> World:
    """Start ranks on this machine and point ``%%px`` at them.

    Args:
        size: number of ranks on one node; 4 where nothing is said.
        nodes: processes on each node, for example ``[2, 1]``; the nodes are laid out on this machine.
        link: makes each node a host with a name and an address, joined to the others at this rate: ``"1gbit"``.
            Where this machine allows no hosts, one sentence says so, and nodes are as without it.
        delay: how long a packet is under way on the link, ``"2ms"``.
        timeout: seconds after which a ``%%px`` cell counts as hung.
        launcher: "fork" (one process imports torch and becomes every rank), "spawn" (every rank imports torch for
            itself); left out, what is right on this machine.
        engines: "slurm", "ssh" or "mpi": ipyparallel's own launchers, for more than one machine.
        elsewhere: ``hosts``, ``address`` and ``options`` of :class:`ranklab.engines.elsewhere.Elsewhere`, with
            ``engines``.

    Returns:
        The running :class:`ranklab.world.World`; the same one again where it is asked for twice.

    Raises:
        WorldError: a size that makes no sense, or other ranks are still running in this notebook.
        RanklabError: the ranks did not come up.

    Used in every chapter, first in *your-first-ranks*::

        world = ranklab.start(4)
    """
    # Here, because it loads ipyparallel: importing ranklab stays cheap.
    from .starting import start as start_world

    return start_world(
        size,
        nodes=nodes,
        link=link,
        delay=delay,
        timeout=timeout,
        launcher=launcher,
        engines=engines,
        **elsewhere,
    )


def hosts(
    count: int, *, link: str = "unlimited", delay: str = "0ms", names: str = "known", subnet: str | None = None
) -> Lab:
    """Make hosts without ranks: computers with a name, an address and a cable each, on this machine.

    Args:
        count: how many; they are called computer1, computer2, …
        link: what each cable carries, ``"1gbit"``, ``"100mbit"``, ``"500kbit"`` bits per second, or ``"unlimited"``.
        delay: how long a packet is under way, ``"2ms"``; where the kernel cannot delay, one sentence says so.
        names: what the hosts find at /etc/hosts: "known" (every name and its address), "unknown" (no name, also not
            their own) or "127.0.1.1" (as Debian installs: a host knows its own name as that address).
        subnet: their network, ``"192.168.7.0/24"``; one that this machine does not use where nothing is said.

    Returns:
        The lab, a sequence of :class:`ranklab.lab.host.Host` and a context manager; ``lab.stop()`` ends it, and so does
        the end of the notebook, whichever way it ends.

    Raises:
        WorldError: an argument that makes no sense, or this machine allows no hosts; the sentence says how to allow
            them.

    Used in the chapter *two-computers*::

        with ranklab.hosts(2, link="1gbit") as lab:
            print(lab[0].run("ping -c 3 computer2"))
    """
    from .lab.lab import Lab
    from .lab.rates import Link, read_delay, read_rate

    return Lab(count, Link(read_rate(link), read_delay(delay)), names, subnet)


def __getattr__(name: str):
    """Load the graders when they are first used: they need ipyparallel, which ``import ranklab`` does not load."""
    if name == "check":
        import importlib

        return importlib.import_module(".check", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Offer what ``__all__`` says, the graders among it, and none of the modules that the package is made of."""
    return sorted(__all__)


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
