"""Why ranks wait: who waits for whom, who never came, the likely cause and the mend.

Pure: reads what the ranks left behind and what their watchdogs told, and says the same on every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from . import mismatch
from .layout import name_ranks
from .outcome import RankOutcome

INIT = "torch.distributed.init_process_group"
TAKES = {"torch.distributed.recv": "receives from", "torch.distributed.irecv": "receives from"}
GIVES = {"torch.distributed.send": "sends to", "torch.distributed.isend": "sends to"}
MORE_TIME = (
    "an endless loop, or more work than the deadline allows.",
    "%%px --timeout 300 gives one cell more seconds.",
)


@dataclass
class Finding:
    """What a report says about ranks that wait.

    Attributes:
        sentence: who waits for whom.
        cause: the likely cause, one sentence.
        mend: what to do about it, one sentence.
        notes: a few words beside single ranks.
    """

    sentence: str
    cause: str = ""
    mend: str = ""
    notes: dict[int, str] = field(default_factory=dict)


def find(outcomes: Sequence[RankOutcome], cut: Sequence[tuple[int, str]] = ()) -> Finding | None:
    """Explain why ranks wait, or that they do not.

    Args:
        outcomes: all ranks that were asked, with their ``place``.
        cut: number and name of each host whose cable is cut.

    Returns:
        None where no rank was freed.
    """
    stuck = [entry for entry in outcomes if entry.state == "freed"]
    if not stuck:
        return None
    severed = partial(_severed, cut=cut)
    for explain in (_stopped, _silent, _going_on, _disagreement, severed, _never_met, _circle, _missing, _alone):
        finding = explain(stuck, outcomes)
        if finding is not None:
            for entry in stuck:
                finding.notes.setdefault(entry.rank, doing(entry))
            return finding
    return _busy(stuck)


def disagreement(recorded: dict[int, dict]) -> Finding | None:
    """Explain a collective that was not the same on all ranks, or None where there is none.

    Args:
        recorded: for each rank ``groups`` and ``collectives``.
    """
    found = mismatch.find(recorded)
    if found is None:
        return None
    if found.operation:
        return Finding(
            found.sentence,
            "the ranks take different ways through the program, or call the same operations in another order.",
            "the n-th collective of a group must be the same on all its ranks: compare the lines above.",
        )
    return Finding(
        found.sentence,
        f"{found.name} needs tensors of the same shape and type on every rank, and gloo does not compare them.",
        "make the tensors equal in shape and type, for example by padding to the largest.",
    )


def doing(entry: RankOutcome) -> str:
    """Say in a few words what a rank was doing when it was freed."""
    place = entry.place or {}
    waiting = pending(entry)
    if waiting:
        what = mismatch.shape(waiting)
        return f"waits in {waiting['name']}, collective {waiting['number']}{', ' + what if what else ''}"
    peer = _peer(entry)
    if peer is not None:
        return f"{_verb(entry)} rank {peer}"
    if place.get("call"):
        return f"in {place['call']}"
    return "computes" if place.get("lines") else ""


def pending(entry: RankOutcome) -> dict | None:
    """Return the first collective that a rank has called and that has not come back."""
    place = entry.place or {}
    return next((called for called in place.get("collectives", ()) if not called["done"]), None)


def _stopped(stuck, _) -> Finding | None:
    stopped = [entry.rank for entry in stuck if (entry.place or {}).get("stopped")]
    if not stopped:
        return None
    return Finding(
        f"The process of {name_ranks(stopped)} was stopped (SIGSTOP){_others(stuck, stopped)}.",
        "something outside of the notebook stopped it: a debugger, Ctrl-Z in a terminal, kill -STOP.",
        "nothing is to be done here: it was continued.",
        {rank: "was stopped" for rank in stopped},
    )


def _silent(stuck, _) -> Finding | None:
    silent = [entry.rank for entry in stuck if entry.place is None]
    if not silent:
        return None
    return Finding(
        f"{name_ranks(silent)} did not answer{_others(stuck, silent)}.",
        "compiled code that does not let Python run, or a rank on another computer.",
        "look at the longest call of the cell.",
    )


def _going_on(stuck, _) -> Finding | None:
    """Ranks that exchange messages all the time: the one they wait for at this moment will come."""
    if not all(entry.place.get("goes_on") or not entry.place.get("call") for entry in stuck):
        return None
    if not any(entry.place.get("goes_on") and entry.place.get("call") for entry in stuck):
        return None
    ranks = name_ranks([entry.rank for entry in stuck])
    return Finding(f"{ranks} work on: messages come and go between them.", *MORE_TIME)


def _disagreement(_, outcomes) -> Finding | None:
    return disagreement({entry.rank: entry.place for entry in outcomes if entry.place})


def _severed(stuck, _, cut: Sequence[tuple[int, str]]) -> Finding | None:
    """Ranks that wait for messages while a cable is cut."""
    waiting = [entry.rank for entry in stuck if entry.place.get("call", "").startswith("torch.")]
    if not cut or not waiting:
        return None
    names = " and ".join(name for _, name in cut)
    return Finding(
        f"{name_ranks(waiting)} {_verb_of(waiting, 'wait')} for messages, and the cable of {names} is cut.",
        "what is sent over a cut cable is lost, and nobody is told: TCP sends it again and again.",
        f"{' '.join(f'world.hosts[{number}].restore()' for number, _ in cut)} puts the cable back.",
    )


def _never_met(stuck, outcomes) -> Finding | None:
    meeting = [entry.rank for entry in stuck if entry.place["call"] == INIT]
    if not meeting:
        return None
    away = [entry for entry in outcomes if entry.rank not in meeting]
    if not away:
        return Finding(
            f"{name_ranks(meeting)} wait in init_process_group, and do not meet.",
            "they were told different addresses, ports or world sizes.",
            "MASTER_ADDR, MASTER_PORT and WORLD_SIZE must be the same on every rank.",
        )
    absent = [entry.rank for entry in away]
    return Finding(
        f"{name_ranks(meeting)} {_verb_of(meeting, 'wait')} in init_process_group for {name_ranks(absent)}, "
        f"{_whereabouts(away)}.",
        "init_process_group comes back when all WORLD_SIZE ranks have called it.",
        "call it on every rank, outside of any `if rank …`.",
        _absent_notes(away, "never called it"),
    )


def _circle(stuck, _) -> Finding | None:
    peers = {entry.rank: _peer(entry) for entry in stuck}
    for start in sorted(peers):
        path = [start]
        while (following := peers.get(path[-1])) is not None and following not in path:
            path.append(following)
        if following is None or following != start:
            continue
        by_rank = {entry.rank: entry for entry in stuck}
        told = ", ".join(f"rank {rank} {_verb(by_rank[rank])} rank {peers[rank]}" for rank in sorted(path))
        everybody_takes = all(by_rank[rank].place["call"] in TAKES for rank in path)
        cause = "everybody waits to receive, and nobody sends" if everybody_takes else "nobody receives"
        return Finding(
            f"{name_ranks(path)} wait for each other: {told}.",
            f"{cause}.",
            "let one of them send first and the other receive first, or start both with dist.batch_isend_irecv.",
        )
    return None


def _missing(stuck, outcomes) -> Finding | None:
    """Ranks that wait in a collective which others have not called."""
    for entry in stuck:
        waiting = pending(entry)
        if waiting is None:
            continue
        same = [other.rank for other in stuck if _has(other, waiting)]
        members = entry.place["groups"].get(waiting["group"], [])
        away = [other for other in outcomes if other.rank in members and not _has(other, waiting)]
        if not away:
            continue
        name, absent = waiting["name"], [other.rank for other in away]
        computing = [other.rank for other in away if other.state == "freed" and not (other.place or {}).get("call")]
        busy = any(other.state == "freed" for other in away)
        why = "the ranks wait in different calls" if busy else "a condition such as `if rank == 0:` left some out"
        if computing:
            why = f"{name_ranks(computing)} may be in an endless loop, or have more work than the deadline allows"
        return Finding(
            f"{name_ranks(same)} {_verb_of(same, 'wait')} in {name} for {name_ranks(absent)}, {_whereabouts(away)}.",
            f"a collective comes back when every rank of its group has called it; {why}.",
            f"let {name_ranks(absent)} call {name} too, or make a group of those that need it with dist.new_group.",
            _absent_notes(away, f"never called {name}"),
        )
    return None


def _alone(stuck, outcomes) -> Finding | None:
    """Ranks that wait for a message from a rank that does not send it."""
    for entry in stuck:
        peer = _peer(entry)
        other = next((one for one in outcomes if one.rank == peer), None)
        if peer is None or other is None:
            continue
        answer = "sends nothing" if entry.place["call"] in TAKES else "receives nothing"
        where = "has finished the cell" if other.state == "done" else f"is elsewhere ({doing(other) or other.state})"
        return Finding(
            f"rank {entry.rank} {_verb(entry)} rank {peer}, which {answer} and {where}.",
            "every send needs a recv on the other rank, and every recv a send.",
            f"write the matching call on rank {peer}.",
        )
    return None


def _busy(stuck) -> Finding:
    ranks = [entry.rank for entry in stuck]
    calls = {entry.place.get("call", "") for entry in stuck}
    inside = f", in {calls.pop()}," if len(calls) == 1 and "" not in calls else ""
    return Finding(
        f"{name_ranks(ranks)} {_verb_of(ranks, 'work')} on{inside} and {_verb_of(ranks, 'wait')} for no other rank.",
        *MORE_TIME,
        {entry.rank: doing(entry) for entry in stuck},
    )


def _has(entry: RankOutcome, waiting: dict) -> bool:
    return any(
        called["group"] == waiting["group"] and called["number"] >= waiting["number"]
        for called in (entry.place or {}).get("collectives", ())
    )


def _whereabouts(away: Sequence[RankOutcome]) -> str:
    if all(entry.state == "done" for entry in away):
        return "which finished the cell without it"
    if all(entry.state == "freed" for entry in away):
        places = {tuple((entry.place or {}).get("lines", ())[-1:]) for entry in away}
        line = " ".join(places.pop()) if len(places) == 1 else ""
        return f"still in {line.replace(':  ', ', ', 1)}" if line else "which did something else"
    return "which did not come"


def _absent_notes(away: Sequence[RankOutcome], words: str) -> dict[int, str]:
    return {entry.rank: f"finished the cell: {words}" for entry in away if entry.state == "done"}


def _peer(entry: RankOutcome) -> int | None:
    place = entry.place or {}
    if place.get("call") not in (*TAKES, *GIVES):
        return None
    return next(iter(place.get("peers", {}).values()), None)


def _verb(entry: RankOutcome) -> str:
    return {**TAKES, **GIVES}[entry.place["call"]]


def _verb_of(ranks: Sequence[int], verb: str) -> str:
    return f"{verb}s" if len(ranks) == 1 else verb


def _others(stuck, ranks: Sequence[int]) -> str:
    others = [entry.rank for entry in stuck if entry.rank not in ranks]
    return f", and {name_ranks(others)} waited" if others else ""
