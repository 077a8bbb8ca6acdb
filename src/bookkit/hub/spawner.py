"""The spawner that a room's JupyterHub uses."""

from __future__ import annotations

from jupyterhub.spawner import SimpleLocalProcessSpawner

from bookkit.hub.turns import InTurn


class RoomSpawner(InTurn, SimpleLocalProcessSpawner):
    """Starts a learner's server as a process of this system's user, in its turn."""
