"""Kernels that are reached through files, so that no other program can take their ports.

jupyter_client chooses the ports of a kernel, gives them back, and the kernel binds them a second later
(``LocalProvisioner.pre_launch`` and ``LocalPortCache`` in jupyter_client/provisioning, 8). Where another program was
quicker the kernel ends with "Address already in use", or does not even end: it waits for its own sockets
(``IPKernelApp.close`` in ipykernel/kernelapp.py, 7), and whoever started it waits ten minutes for an answer. The tests
start hundreds of kernels beside ranks that open ports all the time, and met it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager


def through_files(manager: KernelManager, folder: str | Path) -> None:
    """Let a kernel that has not started be reached through sockets in a folder.

    Args:
        manager: of the kernel.
        folder: private, with a short path: the name of a socket has some hundred characters at most.
    """
    manager.transport = "ipc"
    manager.connection_file = str(Path(folder, "kernel.json"))


class KernelThroughFiles(KernelManager):
    """A kernel manager for nbval, which makes its own and asks nobody how."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._folder = tempfile.TemporaryDirectory(prefix="bookkit-", ignore_cleanup_errors=True)
        through_files(self, self._folder.name)
