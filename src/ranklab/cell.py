"""Running one cell on the ranks: send it, wait for the first trouble or the deadline, collect what is there."""

from __future__ import annotations

import concurrent.futures
import contextlib
import signal
import time
from typing import TYPE_CHECKING

from .layout import name_ranks
from .live import Live
from .outcome import CellOutcome, RankOutcome, clean
from .panel import Panel
from .recovery import free

if TYPE_CHECKING:
    from .world import World

# After one rank has raised, the others get this long to finish before they count as waiting for it.
GRACE = 1.0
POLL = 0.1
OUTPUT_WAIT = 2.0


def wait_for(world: World, replies: dict, timeout: float, live: Live) -> CellOutcome:
    """Wait for what some ranks were asked to do, and always come back.

    Args:
        world: the running world.
        replies: ipyparallel's result of each rank that was asked, by rank.
        timeout: seconds until the request counts as hung.
        live: shows the outcome so far.

    Returns:
        What every rank left behind. No rank is still at work.
    """
    deadline = time.monotonic() + timeout
    reason = "finished"
    try:
        reason = _wait(replies, deadline, lambda: _show(live, world, replies, timeout))
    except KeyboardInterrupt:
        reason = "interrupted"
    stuck = {rank: reply for rank, reply in replies.items() if not reply.done()}
    where = {}
    if stuck:
        with _uninterrupted():
            where = free(world, stuck)
    output_deadline = time.monotonic() + OUTPUT_WAIT
    for reply in replies.values():
        reply.wait_for_output(max(0, output_deadline - time.monotonic()))
    outcomes = [_outcome(rank, reply) for rank, reply in replies.items()]
    alive = world.processes.alive()
    for outcome in outcomes:
        if outcome.rank in stuck:
            _tell_freed(outcome, where.get(outcome.rank))
        if outcome.rank not in alive:
            outcome.state = "died"
        if outcome.state == "died":
            outcome.note = world.processes.how_it_died(outcome.rank)
    return _summary(outcomes, reason, timeout)


def _wait(replies: dict, deadline: float, tick) -> str:
    """Wait until all ranks are done, one has been in trouble for a moment, or the deadline has come."""
    pending = set(replies.values())
    while pending:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return "deadline" if not _failed(replies) else "trouble"
        finished, pending = concurrent.futures.wait(
            pending, timeout=min(POLL, remaining), return_when=concurrent.futures.FIRST_COMPLETED
        )
        if any(not reply.successful() for reply in finished):
            deadline = min(deadline, time.monotonic() + GRACE)
        tick()
    return "finished"


def _failed(replies: dict) -> list[int]:
    return [rank for rank, reply in replies.items() if reply.done() and not reply.successful()]


class _uninterrupted:
    """Finish freeing the ranks even where the reader presses stop again; the press counts afterwards."""

    def __enter__(self) -> None:
        self._pressed = False
        self._before = None
        with contextlib.suppress(ValueError):  # not the main thread: no signal arrives here anyway
            self._before = signal.signal(signal.SIGINT, self._note)

    def _note(self, *_) -> None:
        self._pressed = True

    def __exit__(self, *_) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._pressed:
            raise KeyboardInterrupt


def _show(live: Live, world: World, replies: dict, timeout: float) -> None:
    if not live.due():
        return
    running = [rank for rank, reply in replies.items() if not reply.done()]
    soon = f"running for {live.seconds} s on {name_ranks(running)}, deadline {timeout:g} s" if running else ""
    outcome = CellOutcome([_outcome(rank, reply, tail=3) for rank, reply in replies.items()], headline=soon)
    live.show(Panel(outcome).bundle())


def _tell_freed(outcome: RankOutcome, where: dict | None) -> None:
    """Replace the error that freeing has caused by what the rank was doing."""
    # IPython says this on stderr where our interrupt reaches a rank that is already reporting an error.
    outcome.stderr = outcome.stderr.replace("\nKeyboardInterrupt\n", "")
    if where is None:
        return
    outcome.traceback = list(where.get("lines", []))
    if where.get("call"):
        outcome.traceback.append(f"in {where['call']}")
    if outcome.state != "died":
        outcome.state, outcome.error, outcome.note = "freed", "", "still here when it was freed"


def _summary(outcomes: list[RankOutcome], reason: str, timeout: float) -> CellOutcome:
    result = CellOutcome(outcomes, timed_out=reason == "deadline")
    by_state = {
        state: [entry.rank for entry in outcomes if entry.state == state] for state in ("raised", "died", "freed")
    }
    unfinished = by_state["freed"] + by_state["died"] if result.timed_out else []
    if reason == "interrupted":
        result.headline = f"You stopped {name_ranks([entry.rank for entry in outcomes])}."
    elif unfinished:
        result.headline = f"{name_ranks(unfinished)} did not finish within {timeout:g} s{_still_in(outcomes)}."
    elif by_state["died"]:
        result.headline = next(entry.note for entry in outcomes if entry.state == "died")
    elif by_state["raised"]:
        first = next(entry for entry in outcomes if entry.state == "raised")
        same = [entry.rank for entry in outcomes if entry.error == first.error]
        result.headline = f"{name_ranks(same)} raised {first.error.splitlines()[0]}"
    if by_state["freed"] or by_state["died"]:
        kept = "All ranks answer again and keep their variables."
        if by_state["died"]:
            kept = (
                f"The next cell starts {name_ranks(by_state['died'])} again, without variables; the others keep theirs."
            )
        result.advice = f"{kept} Process groups are gone: dist.init_process_group() makes a new one."
    return result


def _still_in(outcomes: list[RankOutcome]) -> str:
    """Name the library call in which all unfinished ranks were, if there is such a call."""
    calls = {outcome.traceback[-1] for outcome in outcomes if outcome.state == "freed" and outcome.traceback}
    call = calls.pop() if len(calls) == 1 else ""
    return f": still {call}" if call.startswith("in ") else ""


def _outcome(rank: int, reply, tail: int = 0) -> RankOutcome:
    """Read what a rank has sent so far."""
    data = reply.metadata
    outcome = RankOutcome(rank, clean(data["stdout"]), clean(data["stderr"]), displays=list(data["outputs"]))
    if tail:
        outcome.stdout = "\n".join(outcome.stdout.rstrip("\n").split("\n")[-tail:])
        return outcome
    value = data["execute_result"]
    if value:
        outcome.value = clean(value["data"].get("text/plain", ""))
    failure = reply.exception(0) if reply.done() and not reply.successful() else None
    if failure is None:
        return outcome
    if failure.ename == "EngineError":
        outcome.state = "died"
    else:
        outcome.state = "raised"
        outcome.traceback = clean(failure.traceback).rstrip("\n").split("\n")
        said = str(failure.evalue)
        outcome.error = said if said.startswith(failure.ename) else f"{failure.ename}: {said}"
    return outcome
