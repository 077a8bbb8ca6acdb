"""Ranks of torchrun that have started processes of their own, which wait for a store that nobody serves. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..layout import name_ranks
from .evidence import Finding


def find(running: Sequence[int], strays: Mapping[int, int]) -> Finding:
    """Explain why such a program does not come to its end.

    Args:
        running: the ranks that were still running.
        strays: the number of processes that each rank has started, for ranks that have started any.
    """
    ranks = f"{name_ranks(running)} {'was' if len(running) == 1 else 'were'} still running"
    count = sum(strays.values())
    return Finding(
        f"{ranks}, and so {'was' if count == 1 else 'were'} {_processes(count)} that {name_ranks(list(strays))} had "
        "started.",
        "the program starts processes of its own, for example with torch.multiprocessing.spawn. Under torchrun, "
        "init_process_group in these waits for a store that nobody serves.",
        "let torchrun start every process: call the function itself in place of spawn, and init_process_group() "
        "without rank and world_size. Or run the program with python.",
        {rank: f"still running, with {_processes(number)} of its own" for rank, number in strays.items()},
    )


def _processes(count: int) -> str:
    return f"{count} process{'es' * (count != 1)}"
