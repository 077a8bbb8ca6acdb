"""Running one cell on the ranks: send it, wait for the first trouble or the deadline, collect what is there."""

from __future__ import annotations

import concurrent.futures
import contextlib
import re
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..hangs.evidence import doing
from ..hangs.report import summarise, warn
from ..layout import name_ranks
from ..live import Live
from ..outcome import CellOutcome, RankOutcome, clean
from ..system.home import last_line, last_words
from ..system.memory import kills, shortage
from .panel import Panel
from .recovery import ask_all, free

if TYPE_CHECKING:
    from ..world import World

# After one rank has raised, the others get this long to finish before they count as waiting for it.
GRACE = 1.0
POLL = 0.1
LOOK = 1.0  # seconds between two looks whether there is still a controller
PULSE = 0.1  # seconds between two looks whether a rank that waits is ever woken
WOKEN = 3  # a rank that waits for ever is woken once or twice, for reasons of the system's
OUTPUT_WAIT = 2.0
# What torch writes to stderr when its connections are cut: a warning, and a stack of C++ functions.
CUT_WARNING = re.compile(
    r"^(?:\[rank\d+\]:)?\[[WE]\d{4} [^\n]*\n(?:Exception raised[^\n]*\n)?(?:(?:frame #|<omitting)[^\n]*\n)*\n?",
    re.MULTILINE,
)


def run(
    world: World,
    send: Callable[[], dict],
    timeout: float,
    live: Live,
    cell: str = "",
    clock: Callable[[], float] = time.monotonic,
) -> CellOutcome:
    """Ask some ranks to do something, wait for them, and always come back.

    Args:
        world: the running world.
        send: asks the ranks; returns ipyparallel's result of each rank that was asked, by rank.
        timeout: seconds until the request counts as hung.
        live: shows the outcome so far.
        cell: its text, where a cell was sent.
        clock: tells the seconds that count against ``timeout``.

    Returns:
        What every rank left behind. No rank is still at work.
    """
    before: dict = {}
    replies: dict = {}
    try:
        with _uninterrupted():  # a stop between two ranks would leave the first at work, and nobody to wait for it
            replies = send()
            # While they work: this takes less time than a rank needs to fill its memory.
            before = kills(filter(None, map(world.processes.pid, replies)))
        reason = _wait(world, replies, clock() + timeout, lambda: _show(live, world, replies, timeout), clock)
    except KeyboardInterrupt:
        reason = "interrupted"
    if reason == "lost" or world.processes.lost():
        return _all_lost(world, replies)
    stuck = {rank: reply for rank, reply in replies.items() if not reply.done()}
    places, ended = {}, []
    if stuck or _failed(replies):
        with _uninterrupted():
            places = ask_all(world, replies)
            if stuck:
                _mark_progress(world, {rank: places[rank] for rank in stuck if "pulse" in places.get(rank, {})})
                ended = free(world, stuck, places)
    output_deadline = time.monotonic() + OUTPUT_WAIT
    for reply in replies.values():
        reply.wait_for_output(max(0, output_deadline - time.monotonic()))
    outcomes = [_outcome(rank, reply) for rank, reply in replies.items()]
    alive = world.processes.alive()
    for outcome in outcomes:
        outcome.place = places.get(outcome.rank)
        if outcome.rank in stuck:
            _tell_freed(world, outcome, cell)
        if outcome.rank in ended:
            outcome.state, outcome.error = "freed", ""
        elif outcome.rank not in alive:
            outcome.state = "died"
        if outcome.state == "died":
            _look_back(world, outcome, before)
    result = summarise(outcomes, reason, timeout, alive, world.size, cell, world.processes.network.cut)
    for entry in result.ranks:
        if entry.rank in ended:
            entry.note = f"{entry.note}; it did not come back, and its process was ended".removeprefix("; ")
    if not result.headline and len(replies) > 1:
        # One after the other: idle ranks answer in microseconds, and threads would take longer to start.
        answers = {rank: world.processes.ask(rank, "cell") for rank in replies}
        warn(result, {rank: answer for rank, answer in answers.items() if answer})
    return result


def _all_lost(world: World, replies: dict) -> CellOutcome:
    """End what is left of a world whose ranks cannot be reached any more."""
    outcomes = [_outcome(rank, reply) for rank, reply in replies.items()]
    headline = world.processes.lost()
    world.processes.stop()
    advice = "The next cell starts all ranks again, without variables; process groups are gone."
    return CellOutcome(outcomes, headline=headline, advice=advice)


def _mark_progress(world: World, places: dict[int, dict]) -> None:
    """Tell ranks that wait for ever from those that exchange messages all the time."""
    if places:
        time.sleep(PULSE)
        for rank, pulse in ask_all(world, places, "pulse").items():
            called, woken = (now - before for now, before in zip(pulse, places[rank]["pulse"], strict=True))
            places[rank]["goes_on"] = called > 0 or (bool(places[rank]["peers"]) and woken >= WOKEN)


def _look_back(world: World, outcome: RankOutcome, before: dict) -> None:
    """Find out how a rank died from what it has left behind."""
    home, rank = world.processes.home, outcome.rank
    outcome.exit_code = world.processes.await_exit_code(rank)
    outcome.last_line, outcome.last_words = last_line(home, rank), last_words(home, rank)
    outcome.memory = shortage(before)


def _wait(world: World, replies: dict, deadline: float, tick, clock: Callable[[], float]) -> str:
    """Wait until all ranks are done, one has been in trouble for a moment, or the deadline has come."""
    pending = set(replies.values())
    next_look = time.monotonic() + LOOK
    while pending:
        if time.monotonic() > next_look:
            next_look = time.monotonic() + LOOK
            if world.processes.lost(thorough=True):
                return "lost"
        remaining = deadline - clock()
        if remaining <= 0:
            return "deadline" if not _failed(replies) else "trouble"
        finished, pending = concurrent.futures.wait(
            pending, timeout=min(POLL, remaining), return_when=concurrent.futures.FIRST_COMPLETED
        )
        if any(reply.exception() is not None for reply in finished):
            deadline = min(deadline, clock() + GRACE)
        tick()
    return "finished"


def _failed(replies: dict) -> list[int]:
    # Not reply.successful(): it raises in the moment between a result and ipyparallel's own note that it is there
    # (_resolve_result and _finalize_result in asyncresult.py, 9.2).
    return [rank for rank, reply in replies.items() if reply.done() and reply.exception() is not None]


class _uninterrupted:
    """Finish what must not be left half done even where the reader presses stop; the press counts afterwards."""

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
    running = [rank for rank, reply in replies.items() if not reply.done()]
    if not running or not live.due():
        return
    soon = f"running for {live.seconds} s on {name_ranks(running)}, deadline {timeout:g} s"
    outcome = CellOutcome([_outcome(rank, reply, tail=3) for rank, reply in replies.items()], headline=soon)
    for rank, place in ask_all(world, running).items():
        entry = next(entry for entry in outcome.ranks if entry.rank == rank)
        entry.place, entry.traceback = place, place.get("lines", [])[-1:]
        entry.note = doing(entry)
    live.show(Panel(outcome).bundle())


def _tell_freed(world: World, outcome: RankOutcome, cell: str) -> None:
    """Replace the error that freeing has caused by what the rank was doing."""
    # IPython says this on stderr where our interrupt reaches a rank that is already reporting an error.
    outcome.stderr = CUT_WARNING.sub("", outcome.stderr.replace("\nKeyboardInterrupt\n", ""))
    outcome.traceback = list((outcome.place or {}).get("lines", []))
    number, lines = last_line(world.processes.home, outcome.rank), cell.splitlines()
    if outcome.place is None and 0 < number <= len(lines):  # its watchdog could not answer, its bookmark can
        outcome.traceback = [f"line {number}:  {lines[number - 1].strip()}"]
    if outcome.state != "died":
        outcome.state, outcome.error = "freed", ""


def _outcome(rank: int, reply, tail: int = 0) -> RankOutcome:
    """Read what a rank has sent so far."""
    # Not reply.metadata (asyncresult.py, ipyparallel 9.2): it parses dates, which takes longer than all else here.
    data = reply._metadata[0]
    outcome = RankOutcome(rank, clean(data["stdout"]), clean(data["stderr"]), displays=list(data["outputs"]))
    if tail:
        outcome.stdout = "\n".join(outcome.stdout.rstrip("\n").split("\n")[-tail:])
        return outcome
    value = data["execute_result"]
    if value:
        outcome.value = clean(value["data"].get("text/plain", ""))
    failure = reply.exception() if reply.done() else None
    if failure is None:
        return outcome
    ename = getattr(failure, "ename", type(failure).__name__)  # TaskAborted has none
    if ename == "EngineError":
        outcome.state = "died"
    else:
        outcome.state = "raised"
        said = str(getattr(failure, "evalue", failure))
        outcome.error = said if said.startswith(ename) else f"{ename}: {said}"
        outcome.traceback = clean(getattr(failure, "traceback", outcome.error)).rstrip("\n").split("\n")
    return outcome
