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

from .drills.drill import drill
from .errors import RankError, RanklabError, RankTimeout, WorldError
from .figures import node_map, owners, timeline
from .launch.torchrun import torchrun
from .measured import measured
from .rank.device import device
from .rank.meter import meter

if TYPE_CHECKING:
    from . import check
    from .lab.lab import Lab
    from .starting import start

__all__ = [
    "RankError",
    "RankTimeout",
    "RanklabError",
    "WorldError",
    "check",
    "device",
    "drill",
    "hosts",
    "measured",
    "meter",
    "node_map",
    "owners",
    "start",
    "timeline",
    "torchrun",
]


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


def __getattr__(name: str) -> Any:
    """Load what needs ipyparallel when it is first used, so that importing ranklab stays cheap."""
    if name == "start":
        from .starting import start

        return start
    if name == "check":
        from importlib import import_module

        return import_module(".check", __name__)
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
