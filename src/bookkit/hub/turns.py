"""Servers start a few at a time, and the other learners wait their turn.

JupyterHub's own limit refuses whoever comes too many: the fifth learner of a room that logs in together would read "Too
many users trying to log in right now" and have to try again by hand. Here that learner sees the page that says the
server is starting, and then JupyterLab.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

BESIDE = 4  # servers that start at the same time
PATIENCE = 300.0  # seconds that a server has to answer before the next one may start
AGAIN = 0.5  # seconds between two looks


class InTurn:
    """To be mixed into a spawner: ``start`` waits for its turn, and keeps it until the server answers or has ended."""

    turns = asyncio.Semaphore(BESIDE)

    async def start(self) -> tuple[str, int]:
        """Start the server when its turn has come, and return where it is."""
        async with self.turns:
            address, port = await super().start()  # type: ignore[misc]
            await up(self, address, port)
        return address, port


async def up(spawner: Any, address: str, port: int, patience: float = PATIENCE) -> bool:
    """Wait until a server answers; return False where it ended, or had no more time.

    Args:
        spawner: whose ``poll`` says None while the server lives.
        address: where it will listen.
        port: see there.
        patience: seconds.
    """
    until = time.monotonic() + patience
    while time.monotonic() < until and await spawner.poll() is None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(address, port)
            writer.close()
            return True
        await asyncio.sleep(AGAIN)
    return False
