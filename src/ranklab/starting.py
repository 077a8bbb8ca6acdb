"""Starting ranks from the notebook: what was asked for is read, and ``%%px`` is pointed at the world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .cells.nodemap import headline
from .engines.choice import check_elsewhere
from .errors import WorldError
from .lab.rates import read_links
from .layout import read_layout
from .live import publish
from .magics import register
from .world import TIMEOUT, World, latest, make_current


def start(
    size: int | None = None,
    *,
    nodes: Sequence[int] | None = None,
    link: str | None = None,
    delay: str = "0ms",
    timeout: float = TIMEOUT,
    launcher: str | None = None,
    engines: str | None = None,
    **elsewhere: Any,
) -> World:
    """Start ranks: :func:`ranklab.start`, which has the arguments, the errors and the chapter."""
    check_elsewhere(engines, elsewhere)
    hosts = elsewhere.get("hosts")
    layout = read_layout(nodes=list(hosts.values())) if hosts else read_layout(size, nodes)
    links = read_links(link, delay, layout if nodes is not None and not engines else ())
    before = latest()
    if before is not None and before.running:
        running = headline(before.nodes)
        if before.nodes != layout or engines or len(before.links) != len(links):
            raise WorldError(f"This notebook already has {running}. Call world.stop() first, then start again.")
        before.timeout = timeout
        if links:
            before.processes.network.set(links)
        publish({"text/plain": f"Already running: {running}. world.restart() makes new ones."})
        return before
    world = World(layout, timeout, launcher, engines, elsewhere, links)
    make_current(world)
    register()
    return world
