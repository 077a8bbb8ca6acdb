"""Running one cell on the ranks: send it, wait for the first trouble or the deadline, collect what is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..hangs import freed, partners, torchs_log
from ..hangs.report import all_lost, summarise, warn
from ..layout import name_ranks
from ..live import Live
from ..outcome import CellOutcome, RankOutcome
from ..state import RankState
from ..system.backends import named
from ..system.home import has_called, last_line
from ..system.memory import kills
from ..system.patience import FIRST_ANSWER, OUTPUT, POLL
from .asking import ask, ask_all, mark_progress, patience_with
from .deadlines import Deadline, on_the_wall, tell_if_stretched
from .presses import Presses
from .recovery import free, regroup
from .remains import look_back, sent
from .waiting import failed, wait_for

if TYPE_CHECKING:
    from ..engines.processes import Processes


def run(
    processes: Processes,
    send: Callable[[], Mapping],
    timeout: float,
    live: Live,
    presses: Presses,
    cell: str = "",
    deadline: Deadline = on_the_wall,
) -> CellOutcome:
    """Ask some ranks to do something, wait for them, and always come back.

    Args:
        processes: of the running world.
        send: asks the ranks; returns ipyparallel's result of each rank that was asked, by rank.
        timeout: seconds until the request counts as hung.
        live: shows the outcome so far.
        presses: of stop, noted from before this call until its outcome is shown.
        cell: its text, where a cell was sent.
        deadline: which seconds count against the timeout.

    Returns:
        What every rank left behind. No rank is still at work.
    """
    # Before the ranks work: then nothing else wants the processors or Python's lock.
    kills_before = kills(filter(None, map(processes.pid, range(processes.size))))
    replies, began = send(), time.monotonic()
    reason = wait_for(processes, replies, timeout, live, presses, deadline)
    if reason == "deadline":
        tell_if_stretched(timeout, time.monotonic() - began)
    if reason == "lost" or processes.lost():
        return _all_lost(processes, replies)
    stuck = {rank: reply for rank, reply in replies.items() if not reply.done()}
    seen = _look_around(processes, replies, stuck)
    if stuck and live.due():
        live.show({"text/plain": f"freeing {name_ranks(stuck)}, which takes a while on a busy machine"})
    ended = free(processes, stuck, seen) if stuck else []
    _await_prints(processes, replies)
    outcomes = [sent(rank, reply) for rank, reply in replies.items()]
    backend = named(processes.backend)
    for outcome in outcomes:
        outcome.seen = seen.get(outcome.rank)
    if not stuck and partners.group_broken(outcomes):
        ended = regroup(processes)
    alive = processes.alive()
    for outcome in outcomes:
        torchs_log.fold(outcome, backend)
        if outcome.rank in stuck:
            freed.tell(outcome, last_line(processes.home, outcome.rank), cell)
        _tell_end(processes, outcome, ended, alive, kills_before)
        torchs_log.fold_last_words(outcome, backend)
    result = summarise(outcomes, reason, timeout, alive, processes.size, cell, processes.network.cut)
    _note_ended(result, ended)
    if not result.headline and len(replies) > 1:
        _warn_of_wrong_numbers(processes, result, replies)
    return result


def _all_lost(processes: Processes, replies: Mapping) -> CellOutcome:
    """End what is left of a world whose ranks cannot be reached any more."""
    outcomes = [sent(rank, reply) for rank, reply in replies.items()]
    why = processes.lost()
    processes.stop()
    return all_lost(outcomes, why)


def _look_around(processes: Processes, replies: Mapping, stuck: Collection[int]) -> dict[int, RankState]:
    """Return where the ranks are where something went wrong, before anything changes."""
    if not stuck and not failed(replies):
        return {}
    seen = ask_all(processes, replies)
    mark_progress(processes, {rank: seen[rank] for rank in stuck if rank in seen})
    return seen


def _await_prints(processes: Processes, replies: Mapping) -> None:
    """Wait for the last prints of the ranks that are done; they come by another way than the replies."""
    usual = time.monotonic() + FIRST_ANSWER
    late = [rank for rank, reply in replies.items() if not reply.wait_for_output(max(0, usual - time.monotonic()))]
    if not late:
        return
    patience = patience_with(processes, late)
    while late and (left := patience.left(late, OUTPUT)):
        if replies[late[0]].wait_for_output(min(left, POLL)):
            late.pop(0)


def _tell_end(
    processes: Processes,
    outcome: RankOutcome,
    ended: Collection[int],
    alive: Collection[int],
    kills_before: dict[Path, int],
) -> None:
    """Say of a rank whose process has ended whether we ended it, or how it died."""
    if outcome.rank in ended:
        outcome.state, outcome.error = "freed", ""
    elif outcome.rank not in alive:
        outcome.state = "died"
    if outcome.state == "died":
        look_back(processes, outcome, kills_before)


def _note_ended(result: CellOutcome, ended: Collection[int]) -> None:
    for entry in result.ranks:
        if entry.rank in ended:
            freed.tell_ended(entry)


def _warn_of_wrong_numbers(processes: Processes, result: CellOutcome, replies: Mapping) -> None:
    """Ask what a cell that ended well has called, and say so where its ranks did not call the same."""
    called = [rank for rank in replies if has_called(processes.home, rank)]
    if not called:
        return
    # One after the other: idle ranks answer in microseconds, and threads would take longer to start.
    answers = {rank: ask(processes, rank, "cell") if rank in called else RankState() for rank in replies}
    warn(result, {rank: answer for rank, answer in answers.items() if isinstance(answer, RankState)})
