"""What each rank left behind of a cell: what it sent, where it was, and how its process ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..outcome import RankOutcome, clean
from ..system.home import last_line, last_words
from ..system.memory import shortage

if TYPE_CHECKING:
    from ..engines.processes import Processes


def sent(rank: int, reply: Any) -> RankOutcome:
    """Read what a rank has sent so far.

    Args:
        rank: the rank.
        reply: ipyparallel's result, which may still be pending.
    """
    outcome = printed(rank, reply)
    if value := _data(reply)["execute_result"]:
        outcome.value = clean(value["data"].get("text/plain", ""))
    failure = reply.exception() if reply.done() else None
    if failure is not None:
        _tell_error(outcome, failure)
    return outcome


def printed(rank: int, reply: Any, lines: int | None = None) -> RankOutcome:
    """Read what a rank has printed and displayed so far.

    Args:
        rank: the rank.
        reply: ipyparallel's result.
        lines: only so many of the last lines.
    """
    data = _data(reply)
    outcome = RankOutcome(rank, clean(data["stdout"]), clean(data["stderr"]), displays=list(data["outputs"]))
    if lines is not None:
        outcome.stdout = "\n".join(outcome.stdout.rstrip("\n").split("\n")[-lines:])
    return outcome


def _data(reply: Any) -> dict:
    # Not reply.metadata (asyncresult.py, ipyparallel 9.2): it parses dates, which takes longer than all else here.
    return reply._metadata[0]


def _tell_error(outcome: RankOutcome, failure: BaseException) -> None:
    ename = getattr(failure, "ename", type(failure).__name__)  # TaskAborted has none
    if ename == "EngineError":
        outcome.state = "died"
        return
    outcome.state = "raised"
    said = str(getattr(failure, "evalue", failure))
    outcome.error = said if said.startswith(ename) else f"{ename}: {said}"
    outcome.traceback = clean(getattr(failure, "traceback", outcome.error)).rstrip("\n").split("\n")


def look_back(processes: Processes, outcome: RankOutcome, kills_before: dict[Path, int]) -> None:
    """Find out how a rank died from what it has left behind.

    Args:
        processes: of the world.
        outcome: of the rank.
        kills_before: what :func:`ranklab.system.memory.kills` told while it ran.
    """
    home, rank = processes.home, outcome.rank
    outcome.exit_code = processes.await_exit_code(rank)
    outcome.last_line, outcome.last_words = last_line(home, rank), last_words(home, rank)
    outcome.memory = shortage(kills_before)
