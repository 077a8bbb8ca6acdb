"""The process that runs ipyparallel's controller: the same program, plus what ranks in a notebook need.

Adds the dead man's switch, and admits an engine at its first heartbeat: stock ipyparallel waits for the beat after.
"""

from __future__ import annotations

from ipyparallel.controller import heartmonitor
from ipyparallel.controller.app import main

from ..system.deadman import watch_owner


class PromptHeartMonitor(heartmonitor.HeartMonitor):
    """A heart monitor that tells the hub of a new engine as soon as its heart has answered."""

    def handle_pong(self, msg: list[bytes]) -> None:
        """Note that a heart has beaten; called with the parts of its message."""
        super().handle_pong(msg)
        new = self.responses - self.hearts
        if new:
            self.handle_new_hearts(new)


if __name__ == "__main__":
    heartmonitor.HeartMonitor = PromptHeartMonitor  # its process is a fork of this one and looks the name up
    watch_owner()
    main()
