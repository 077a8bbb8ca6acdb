"""The process that runs ipyparallel's controller: the same program, plus what ranks in a notebook need.

Adds the dead man's switch, admits an engine at its first heartbeat (stock ipyparallel waits for the beat after), and
keeps the ports it has chosen.
"""

from __future__ import annotations

import socket
import sys

from ipyparallel import util
from ipyparallel.controller import heartmonitor
from ipyparallel.controller.app import main

from ..system.deadman import watch_owner
from ..system.ports import reserve_port


class PromptHeartMonitor(heartmonitor.HeartMonitor):
    """A heart monitor that tells the hub of a new engine as soon as its heart has answered."""

    def handle_pong(self, msg: list[bytes]) -> None:
        """Note that a heart has beaten; called with the parts of its message."""
        super().handle_pong(msg)
        new = self.responses - self.hearts
        if new:
            self.handle_new_hearts(new)


HELD: list[socket.socket] = []


def hold_ports(n: int) -> list[int]:
    """Choose n free ports and keep them from other programs while this one runs.

    Stock ipyparallel's ``select_random_ports`` lets go of them, and its schedulers bind them up to seconds later: on a
    machine where many clusters start, another program gets one in between.
    """
    chosen = [reserve_port("") for _ in range(n)]
    HELD.extend(chosen)
    return [port.getsockname()[1] for port in chosen]


if __name__ == "__main__":
    if sys.platform == "linux":  # elsewhere not even a socket of this program may listen on a port that is bound
        util.select_random_ports = hold_ports
    heartmonitor.HeartMonitor = PromptHeartMonitor  # its process is a fork of this one and looks the name up
    watch_owner()
    main()
