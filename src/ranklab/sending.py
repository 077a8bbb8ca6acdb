"""Variables on their way between the notebook and the ranks, and what is said where they do not arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .errors import WorldError, one_line
from .layout import name_ranks

if TYPE_CHECKING:
    import ipyparallel as ipp
    from ipyparallel.serialize import PrePickled

    from .engines.processes import Processes

DIED = "EngineError"  # ipyparallel's name for the end of a rank that was asked


def pickled(variables: Mapping[str, Any]) -> dict[str, PrePickled]:
    """Return variables as ipyparallel sends them.

    Raises:
        WorldError: one of them cannot be pickled.
    """
    from ipyparallel.serialize import PrePickled

    ready = {}
    for name, value in variables.items():
        try:
            ready[name] = PrePickled(value)
        except Exception as error:
            raise WorldError(f"{name!r} cannot be sent to the ranks: {one_line(error)}.") from None
    return ready


def answers(reply: ipp.AsyncResult, timeout: float, processes: Processes, refused: str) -> list[Any]:
    """Wait for the ranks' answers and return them, in rank order.

    Args:
        reply: of all ranks.
        timeout: seconds after which nobody waits any more.
        processes: of the world.
        refused: what is said where a rank raises an error; its ranks and the error follow.

    Raises:
        WorldError: a rank is busy, has died, or has raised an error.
    """
    from ipyparallel.error import CompositeError

    reply.wait(timeout)
    if not reply.ready():
        raise WorldError(f"The ranks did not answer within {timeout:g} s: is a cell still running there?")
    try:
        return reply.get()
    except CompositeError as error:
        alive = processes.alive()
        dead = [rank for rank in range(processes.size) if rank not in alive]
        raise WorldError(why_not(error.elist, dead, refused)) from None


def why_not(errors: Sequence[tuple], dead: Sequence[int], refused: str) -> str:
    """Return a sentence on errors that ranks have raised instead of answering.

    Args:
        errors: as ipyparallel lists them: name, message, traceback, and a dictionary with the rank.
        dead: the ranks whose processes have ended.
        refused: how the sentence begins, see :func:`answers`.
    """
    if any(name == DIED for name, *_ in errors):
        died = name_ranks(dead)
        return f"{died} died before answering. The next cell starts {died} again, without variables."
    name, message = errors[0][:2]
    ranks = [info["engine_id"] for other, said, _, info in errors if (other, said) == (name, message)]
    return f"{refused} {name_ranks(ranks)}: {' '.join(f'{name}: {message}'.split())}."
