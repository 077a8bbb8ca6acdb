"""Which worlds of a benchmark this machine can make."""

from __future__ import annotations

from typing import Any

import ranklab
from ranklab.errors import NoHosts


def possible(worlds: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Leave out the worlds with a link where this machine allows no hosts: they would fall back to loopback.

    Args:
        worlds: for each world its name and a tuple whose first member is what ``ranklab.start`` takes.
    """
    try:
        with ranklab.hosts(1):
            return dict(worlds)
    except NoHosts:
        return {name: world for name, world in worlds.items() if "link" not in world[0]}
