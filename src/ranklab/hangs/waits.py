"""Who waits for whom: in the meeting of a process group, in a collective, for a message.

Each explanation returns None where it is not the case, see :func:`ranklab.hangs.diagnosis.find`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..layout import name_ranks
from ..outcome import RankOutcome
from ..state import Collective
from .called import as_called, has
from .evidence import MORE_TIME, TAKES, Case, Finding, doing, peer, pending, state_of, verb, verb_of, works_on_device

WAIT = re.compile(r"\.wait\(\w*\)")
INIT = "torch.distributed.init_process_group"
NOT_SENT = "to which this cell was not sent"
LEFT_OUT = "--ranks left out ranks that have to take part."
TO_ALL = "send the cell to all ranks, without --ranks."
PAIRS = "every send needs a recv on the other rank, and every recv a send"
# What keeps ranks in an operation that every rank of the group has called, and what to do about it.
ROOTS = "the ranks may name different roots in {0}=.", "give {0}= the same value on every rank."
SIZES = (
    "a rank may expect another size than its peer sends.",
    "give send and receive splits that fit, for every pair of ranks.",
)
ALL_CAME = {
    **{name: tuple(words.format("dst") for words in ROOTS) for name in ("gather", "reduce")},
    **{name: tuple(words.format("src") for words in ROOTS) for name in ("scatter", "broadcast")},
    "all_to_all": SIZES,
}


ON_ITS_WAY = (
    "the bytes are still on their way: the cable carries some at this moment, and there are many or it is slow.",
    MORE_TIME,
)
# Calls of torch.distributed in which ranks wait for all others, and of which its recorder notes nothing.
UNRECORDED = {f"torch.distributed.{name}" for name in ("new_group", "new_subgroups", "monitored_barrier")}


def never_met(case: Case) -> Finding | None:
    """Ranks that wait for the others in ``init_process_group``."""
    meeting = [entry.rank for entry in case.stuck if state_of(entry).call == INIT]
    if not meeting:
        return None
    away = [entry for entry in case.outcomes if entry.rank not in meeting]
    waits = f"{name_ranks(meeting)} {verb_of(meeting, 'wait')} in init_process_group"
    if case.outside:
        return Finding(f"{waits} for {name_ranks(case.outside)}, {NOT_SENT}.", LEFT_OUT, TO_ALL)
    if not away:
        return Finding(
            f"{waits}, and do not meet.",
            "they were told different addresses, ports or world sizes.",
            "MASTER_ADDR, MASTER_PORT and WORLD_SIZE must be the same on every rank.",
        )
    return Finding(
        f"{waits} for {name_ranks([entry.rank for entry in away])}, {_whereabouts(away)}.",
        "init_process_group comes back when all WORLD_SIZE ranks have called it.",
        "call it on every rank, outside of any `if rank …`.",
        _absent_notes(away, "never called it"),
    )


def circle(case: Case) -> Finding | None:
    """Ranks that wait for messages from each other."""
    by_rank = {entry.rank: entry for entry in case.stuck}
    peers = {rank: peer(entry) for rank, entry in by_rank.items()}
    for start in sorted(peers):
        path = [start]
        while (following := peers.get(path[-1])) is not None and following not in path:
            path.append(following)
        if following is None or following != start:
            continue
        told = ", ".join(f"rank {rank} {verb(by_rank[rank])} rank {peers[rank]}" for rank in sorted(path))
        sentence = f"{name_ranks(path)} wait for each other: {told}."
        takers = [rank for rank in path if state_of(by_rank[rank]).call in TAKES]
        if len(path) == 2 and len(takers) == 1:
            if all(state_of(by_rank[rank]).sends for rank in path):
                return Finding(sentence, *ON_ITS_WAY)
            cause = "the send and the recv are not a pair: they have another tag or another group."
            return Finding(sentence, cause, "give both calls the same tag and the same group.")
        cause = "everybody waits to receive, and nobody sends." if len(takers) == len(path) else "nobody receives."
        fix = "let one of them send first and the other receive first, or start both with dist.batch_isend_irecv."
        return Finding(sentence, cause, fix)
    return None


def missing(case: Case) -> Finding | None:
    """Ranks that wait in a collective which others have not called."""
    for entry in case.stuck:
        waiting = pending(as_called(entry))
        if waiting is None:
            continue
        members = state_of(entry).groups.get(waiting.group, [])
        outside = [rank for rank in case.outside if rank in members]
        away = [other for other in case.outcomes if other.rank in members and not has(other, waiting)]
        same = [other.rank for other in case.stuck if has(other, waiting)]
        waits = f"{name_ranks(same)} {verb_of(same, 'wait')} in {waiting.name}"
        if outside:
            return Finding(f"{waits} for {name_ranks(outside)}, {NOT_SENT}.", LEFT_OUT, TO_ALL)
        if away:
            return _of_absent(f"{waits} for {name_ranks([other.rank for other in away])}", waiting, away)
    return None


def _of_absent(waits: str, waiting: Collective, away: list[RankOutcome]) -> Finding:
    """Explain why ranks have not come to a collective in which others wait."""
    name, absent = waiting.name, name_ranks([other.rank for other in away])
    sentence = f"{waits}, {_whereabouts(away)}."
    rule = "a collective comes back when every rank of its group has called it;"
    earlier = {other.rank: _calls(other, waiting.group) for other in away}
    if all(other.state == "done" and earlier[other.rank] for other in away):
        return Finding(
            sentence,
            f"{rule} {absent} called fewer: a shorter loop or data loader, or a branch that left the call out (in DDP "
            "a parameter that was not used).",
            "give every rank equally many steps, for example with drop_last or DDP's join(), and the same branches.",
            {
                other.rank: f"finished the cell after {_told(other, earlier[other.rank], waiting.group)}"
                for other in away
            },
        )
    crossed = [other for other in away if other.state == "freed" and pending(other)]
    if len(crossed) == len(away):
        return Finding(
            sentence,
            f"the ranks use two groups in another order: {absent} {verb_of(away, 'wait')} in the other group.",
            "call the collectives of all groups in the same order on every rank.",
        )
    computing = [other.rank for other in away if other.state == "freed" and _computes(other)]
    if computing:
        who = name_ranks(computing)
        return Finding(
            sentence,
            f"{rule} {who} may be in an endless loop, or have more work than the deadline allows.",
            f"see why {who} {'is' if len(computing) == 1 else 'are'} still there, or give the cell more seconds: "
            "%%px --timeout 300.",
            _absent_notes(away, f"never called {name}"),
        )
    if talking := [other for other in away if other.state == "freed" and peer(other) is not None]:
        told = ", ".join(f"rank {other.rank} {verb(other)} rank {peer(other)}" for other in talking)
        return Finding(
            sentence,
            f"{PAIRS}; {told}.",
            f"write the matching call on rank {peer(talking[0])}, or leave out the one that has none.",
            _absent_notes(away, f"never called {name}"),
        )
    if elsewhere := [other for other in away if other.state == "freed" and not _calls_torch(other)]:
        who = name_ranks([other.rank for other in elsewhere])
        where = " and ".join(sorted({state_of(other).call for other in elsewhere}))
        return Finding(
            sentence,
            f"{rule} {who} {verb_of(elsewhere, 'wait')} for something that is no rank, in {where}.",
            f"see what {who} {verb_of(elsewhere, 'wait')} for and why it does not come: a thread, a process, a file, a "
            "lock, somebody's input.",
            _absent_notes(away, f"never called {name}"),
        )
    busy = any(other.state == "freed" for other in away)
    why = "the ranks wait in different calls" if busy else "a condition such as `if rank == 0:` left some out"
    return Finding(
        sentence,
        f"{rule} {why}.",
        f"let {absent} call {name} too, or make a group of those that need it with dist.new_group.",
        _absent_notes(away, f"never called {name}"),
    )


def alone(case: Case) -> Finding | None:
    """Ranks that wait for a message which their peer neither sends nor receives.

    Where ranks wait in a chain, its end is told: the rank whose peer waits for nobody.
    """
    waiting = {entry.rank for entry in case.stuck}
    for entry in sorted(case.stuck, key=lambda entry: peer(entry) in waiting):
        other = next((one for one in case.outcomes if one.rank == peer(entry)), None)
        if peer(entry) in case.outside:
            return Finding(f"rank {entry.rank} {verb(entry)} rank {peer(entry)}, {NOT_SENT}.", LEFT_OUT, TO_ALL)
        if other is None:
            continue
        if other.state == "freed" and not state_of(other).call and WAIT.search(" ".join(state_of(other).lines[-1:])):
            return Finding(
                f"rank {entry.rank} {verb(entry)} rank {other.rank}, which waits for what it has started before.",
                "the send and the recv are not a pair: another tag or another group, or each waits for the other.",
                "give both calls the same tag and the same group, and start them with dist.batch_isend_irecv.",
            )
        answer = "sends nothing" if state_of(entry).call in TAKES else "receives nothing"
        where = "has finished the cell" if other.state == "done" else f"is elsewhere ({doing(other) or other.state})"
        late = other.state == "freed" and not _calls_torch(other)  # perhaps the matching call is its next line
        return Finding(
            f"rank {entry.rank} {verb(entry)} rank {other.rank}, which {answer} and {where}.",
            f"{PAIRS}{f'; or rank {other.rank} has more work before it than the deadline allows' * late}.",
            f"write the matching call on rank {other.rank}{', or give more seconds: %%px --timeout 300' * late}.",
        )
    return None


def all_came(case: Case) -> Finding | None:
    """Ranks that wait in an operation which every rank of the group has called."""
    for entry in case.stuck:
        waiting = pending(entry)
        if waiting is None or waiting.name not in ALL_CAME or not state_of(entry).groups.get(waiting.group):
            continue  # where nobody has told who is in the group, nobody knows that all came
        same = [other.rank for other in case.stuck if _waits_in(other, waiting)]
        cause, fix = ON_ITS_WAY if state_of(entry).sends else ALL_CAME[waiting.name]
        waits = f"{name_ranks(same)} {verb_of(same, 'wait')} in {waiting.name}"
        return Finding(f"{waits}, which all ranks of its group have called.", cause, fix)
    return None


def awaiting(case: Case) -> Finding | None:
    """Ranks that wait in the ``wait()`` of a ``Work`` that they have started before; torch does not tell for whom."""
    lines = {line for entry in case.stuck for line in state_of(entry).lines[-1:]}
    if any(state_of(entry).call for entry in case.stuck) or not lines or not all(map(WAIT.search, lines)):
        return None
    ranks = [entry.rank for entry in case.stuck]
    sentence = f"{name_ranks(ranks)} {verb_of(ranks, 'wait')} for what was started before, a message or a collective."
    if all(state_of(entry).sends for entry in case.stuck):
        return Finding(sentence, *ON_ITS_WAY)
    return Finding(
        sentence,
        "an isend, irecv or collective of these ranks has no partner: another peer, tag or group, or a call less.",
        "write the matching call on the other rank: the line above says which work is waited for.",
    )


def unmet(case: Case) -> Finding | None:
    """Ranks that wait in a call of torch.distributed of which torch's recorder knows nothing, and others do not."""
    calls = {state_of(entry).call for entry in case.stuck} & UNRECORDED
    if len(calls) != 1:
        return None
    call = calls.pop()
    same = [entry.rank for entry in case.stuck if state_of(entry).call == call]
    away = [entry for entry in case.outcomes if entry.rank not in same]
    name = call.rpartition(".")[2]
    waits = f"{name_ranks(same)} {verb_of(same, 'wait')} in {name}"
    if case.outside:
        return Finding(f"{waits} for {name_ranks(case.outside)}, {NOT_SENT}.", LEFT_OUT, TO_ALL)
    if not away:
        return None
    absent = name_ranks([entry.rank for entry in away])
    all_ranks = "all ranks, those too that are not in the group, have" if name == "new_group" else "every rank has"
    return Finding(
        f"{waits} for {absent}, {_whereabouts(away)}.",
        f"{name} comes back when {all_ranks} called it; a condition such as `if rank == 0:` left some out.",
        f"let {absent} call {name}, too.",
        _absent_notes(away, f"never called {name}"),
    )


def _waits_in(entry: RankOutcome, called: Collective) -> bool:
    """Say whether a rank waits in the same collective, whatever its own tensors are."""
    own = pending(entry)
    return own is not None and (own.group, own.number) == (called.group, called.number)


def _calls_torch(entry: RankOutcome) -> bool:
    return state_of(entry).call.startswith("torch.distributed.")


def _computes(entry: RankOutcome) -> bool:
    """Say whether a rank is at work and not in a call that waits for another."""
    return not state_of(entry).call or (state_of(entry).computes and not _calls_torch(entry))


def _told(entry: RankOutcome, count: int, group: str) -> str:
    """Return how many collectives a rank has called, in words; torch's recorder has told the latest only."""
    known = [called for called in state_of(entry).collectives if called.group == group]
    more = "at least " * (known[0].recent and known[0].number > 1)
    return f"{more}{count} collective{'s' * (count > 1)}"


def _calls(entry: RankOutcome, group: str) -> int:
    """Return how many collectives of a group a rank has called in this cell."""
    return sum(called.group == group and called.recent for called in state_of(entry).collectives)


def _whereabouts(away: Sequence[RankOutcome]) -> str:
    if all(entry.state == "done" for entry in away):
        return "which finished the cell without it"
    if all(works_on_device(entry) for entry in away):
        return f"whose GPU{'s are' if len(away) > 1 else ' is'} still at work"
    if all(entry.state == "freed" for entry in away):
        lines = {tuple(state_of(entry).lines[-1:]) for entry in away}
        line = " ".join(lines.pop()) if len(lines) == 1 else ""
        return f"still in {line.replace(':  ', ', ', 1)}" if line else "which did something else"
    return "which did not come"


def _absent_notes(away: Sequence[RankOutcome], words: str) -> dict[int, str]:
    return {entry.rank: f"finished the cell: {words}" for entry in away if entry.state == "done"}
