"""Starting ranks from the notebook: what was asked for is read, and ``%%px`` is pointed at the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .cells.nodemap import headline
from .engines.choice import check_elsewhere
from .engines.devices import check_backend
from .errors import RanklabError, WorldError
from .lab.rates import Link, read_links
from .layout import read_layout
from .live import publish
from .system.patience import DEADLINE, LONGEST
from .world import World, latest, make_current, note_failed


def start(
    size: int | None = None,
    *,
    nodes: Sequence[int] | None = None,
    link: str | None = None,
    delay: str = "0ms",
    deadline: float | None = DEADLINE,
    backend: str | None = None,
    launcher: str | None = None,
    engines: str | None = None,
    hosts: Mapping[str, int] | None = None,
    address: str = "",
    options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    **unknown: Any,
) -> World:
    """Start ranks on this machine and point ``%%px`` at them.

    Args:
        size: number of ranks on one node, 4 by default.
        nodes: processes on each node, for example ``[2, 1]``; the nodes are laid out on this machine.
        link: makes each node a host with a name and an address, joined to the others at this rate: ``"1gbit"``.
            Where this machine allows no hosts, one sentence says so, and nodes are as without it.
        delay: how long a packet is under way on the link, ``"2ms"``.
        deadline: seconds after which a ``%%px`` cell counts as hung.
        backend: "gloo" keeps the ranks on the CPU; "nccl" gives each a GPU, or lets them share where there are fewer,
            for learning and not for speed. By default "nccl" where each rank has a GPU of its own, else "gloo".
        launcher: "fork" (one process imports torch and becomes every rank) or "spawn" (every rank imports torch for
            itself); by default what is right on this machine.
        engines: "slurm", "ssh" or "mpi": ipyparallel's own launchers, for more than one machine.
        hosts: with ``engines="ssh"``, the ranks of each host: ``{"computer1": 2, "computer2": 1}``.
        address: with ``engines``, an address of this machine that the hosts can reach; encryption is on then.
        options: with ``engines``, further traits of ipyparallel's launcher: ``{"queue": "debug"}``.
        timeout: the former name of ``deadline``.
        unknown: refused, with the name that is meant.

    Returns:
        The running :class:`ranklab.world.World`; the same one again where it is asked for twice.

    Raises:
        WorldError: a size that makes no sense, or other ranks are still running in this notebook.
        RanklabError: the ranks did not come up.

    Used in every chapter, first in *your-first-ranks*::

        world = ranklab.start(4)
    """
    elsewhere = {"hosts": hosts, "address": address, "options": options}
    given = {name: value for name, value in elsewhere.items() if value}
    check_elsewhere(engines, given | unknown)
    check_backend(backend)
    layout = read_layout(nodes=list(hosts.values())) if hosts else read_layout(size, nodes)
    links = read_links(link, delay, layout if nodes is not None and not engines else ())
    seconds = read_deadline(deadline, timeout)
    running = latest()
    if running is not None and running.running:
        return _again(running, layout, links, seconds, engines, {"launcher": launcher, "backend": backend})
    try:
        world = World(layout, seconds, launcher, engines, given, links, backend)
    except RanklabError as error:
        note_failed(error)
        raise
    make_current(world)
    # Here, because it loads ipyparallel: by now the ranks' start has, while another process imported torch.
    from .magics import register

    register()
    return world


def read_deadline(deadline: object, timeout: object = None) -> float:
    """Return the seconds after which a cell counts as hung.

    Args:
        deadline: what was asked for, None for the default, too.
        timeout: the same under its former name.

    Raises:
        WorldError: both were given, or what was given is no number of seconds.
    """
    asked = None if deadline is DEADLINE else deadline  # that object, for a reader can mean the same number
    if asked is not None and timeout is not None:
        raise WorldError("Give either deadline= or timeout=, its former name, not both.")
    seconds = next((given for given in (asked, timeout) if given is not None), DEADLINE)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= LONGEST:
        raise WorldError(f"deadline takes seconds, for example start(4, deadline=10), not {seconds!r}.")
    return seconds


def _again(
    world: World,
    layout: Sequence[int],
    links: Sequence[Link],
    deadline: float,
    engines: str | None,
    wishes: Mapping[str, str | None],
) -> World:
    """Return the world that runs already, where it is what was asked for.

    Raises:
        WorldError: something else was asked for, which takes new ranks.
    """
    told = headline(world.nodes)
    if world.nodes != tuple(layout) or engines or len(world.links) != len(links):
        raise WorldError(f"This notebook already has {told}. Call world.stop() first, then start again.")
    for name, wish in wishes.items():
        if wish not in (None, getattr(world, name)):
            raise WorldError(
                f'This notebook already has {told}, started with {name}="{getattr(world, name)}". '
                "Call world.stop() first, then start again."
            )
    world.timeout = deadline
    if links:
        world.processes.network.set(links)
    publish({"text/plain": f"Already running: {told}. world.restart() makes new ones."})
    return world
