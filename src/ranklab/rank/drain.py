"""The end of a cell on a GPU: it has come when the work that the cell gave to the GPU has ended.

A call that uses a GPU comes back before it is done. Without this a collective that a rank has skipped would be noticed
in an innocent line of a later cell, or be paired with that cell's collective. Runs inside a rank, in the thread that
runs its cells, so the cell's deadline and the reader's stop reach it. Standard library only; torch is looked up where
the reader has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from .device import in_use

_waits = False


def waits() -> bool:
    """Say whether all lines of the present cell have run, and only its device is still at work."""
    return _waits


def follow(shell, lines_have_run: Callable[[], None]) -> None:
    """Let each cell of a shell end when the device has done what the cell gave to it.

    A cell that has raised an error ends at once: its report comes first.

    Args:
        shell: the rank's IPython shell, which runs the statements of a cell in ``run_ast_nodes``.
        lines_have_run: called before the rank waits for its device.
    """
    run = shell.run_ast_nodes

    async def run_ast_nodes(*arguments, result=None, **options):
        raised = await run(*arguments, result=result, **options)
        if raised or not _devices():
            return raised
        lines_have_run()
        try:
            _wait()
        except Exception as error:  # of the work itself: an error of the cell, as IPython's run_code tells one
            if result is not None:
                result.error_in_exec = error
            shell.showtraceback(running_compiled_code=True)
            return True
        return False

    shell.run_ast_nodes = run_ast_nodes


def _wait() -> None:
    global _waits
    _waits = True
    try:
        for synchronize, index in _devices():
            synchronize(index)
    finally:
        _waits = False


def _devices() -> list[tuple[Callable[[int], None], int]]:
    """Return the devices that this process uses, each with what waits for it; none where the backend is for CPUs."""
    module = in_use()
    if module is None:
        return []
    # To synchronize a device that this rank does not use would take memory there: half a gigabyte of another rank's.
    used = getattr(sys.modules["torch"]._C, "_cuda_hasPrimaryContext", None)
    indices = [module.current_device()] if used is None else filter(used, range(module.device_count()))
    return [(module.synchronize, index) for index in indices]
