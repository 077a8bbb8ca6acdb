"""From what the ranks did to what the panel says: the cause first, its consequences after it.

Pure but for the files that a dead rank has left.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from ..layout import name_ranks
from ..outcome import CellOutcome, RankOutcome
from ..state import RankState
from . import diagnosis, lastwords, mismatch
from .evidence import pending, state_of

# What gloo says in a rank whose partner has gone: torch/…/gloo/transport/tcp/pair.cc.
LOST = re.compile(r"Connection closed by peer|Connection reset by peer|Broken pipe|Read error|Write error")
GROUPS_GONE = (
    "Process groups, and what was built on them (DDP, device meshes), are gone: dist.init_process_group "
    "makes a new one."
)
LONG = 200  # characters; DDP's errors are paragraphs, and the panel has the whole of them below its first line
HINTS = (
    (
        "initialize the default process group twice",
        "a group exists already.",
        "call dist.destroy_process_group() first, or only `if not dist.is_initialized()`.",
    ),
    (
        "Default process group has not been initialized",
        "this rank has no process group.",
        "call dist.init_process_group() before it, on every rank.",
    ),
    (
        "can't allocate memory",
        "this process may not have that much memory.",
        "use a smaller tensor, batch or model, or fewer ranks.",
    ),
    ("out of memory", "the device is full.", "use a smaller batch or model, or see who else uses it: nvidia-smi."),
)


def summarise(
    outcomes: list[RankOutcome],
    reason: str,
    timeout: float,
    alive: Sequence[int],
    size: int,
    cell: str = "",
    cut: Sequence[tuple[int, str]] = (),
) -> CellOutcome:
    """Say what happened in a cell.

    Args:
        outcomes: every rank that was asked.
        reason: "finished", "trouble", "deadline" or "interrupted".
        timeout: the deadline, seconds.
        alive: the ranks whose processes run.
        size: number of ranks of the world.
        cell: its text, for the line in which a rank died.
        cut: number and name of each host whose cable is cut.
    """
    result = CellOutcome(outcomes, timed_out=reason == "deadline")
    died = [entry for entry in outcomes if entry.state == "died"]
    found = diagnosis.find(outcomes, size, cut)
    _mark_consequences(outcomes, died)
    raised = [entry for entry in outcomes if entry.state == "raised"]
    if died:
        result.headline = f"rank {died[0].rank} {_how(died[0], cell)}"
        for entry in died:
            entry.note = _how(entry, cell)
        result.cause, result.mend = _why_died(died[0], outcomes)
    elif raised:
        result.headline, result.cause, result.mend = _of_error(raised)
    elif found is not None:
        when = "You stopped the cell: " if reason == "interrupted" else f"After {timeout:g} s: "
        result.headline = when + _inside(found.sentence)
        result.cause, result.mend = found.cause, found.mend
    elif reason == "interrupted":
        result.headline = f"You stopped {name_ranks([entry.rank for entry in outcomes])}."
    if found is not None:
        for entry in outcomes:
            entry.note = entry.note or found.notes.get(entry.rank, "")
    if result.headline and (died or any(entry.state in ("freed", "lost") for entry in outcomes)):
        result.advice = _advice(outcomes, [rank for rank in range(size) if rank not in alive])
        result.details = _details(outcomes)
    return result


def warn(outcome: CellOutcome, seen: dict[int, RankState]) -> None:
    """Say that a cell which ended well has mixed different collectives: its numbers are wrong.

    Args:
        outcome: of the cell; gets the warning.
        seen: groups and collectives of the cell, for each rank.
    """
    found = diagnosis.disagreement(seen)
    if found is not None:
        outcome.warning = f"{found.sentence} The cell came to its end, but its numbers are not what they should be."
        outcome.cause, outcome.mend = found.cause, found.mend


def _mark_consequences(outcomes: list[RankOutcome], died: list[RankOutcome]) -> None:
    """Tell a rank that only lost its partner from the one that is the cause."""
    errors = [entry for entry in outcomes if entry.state == "raised"]
    lost = [entry for entry in errors if LOST.search(entry.error)]
    if not died and len(lost) == len(errors):
        return  # nobody else is to blame: show what gloo said
    partners = f"{name_ranks([entry.rank for entry in died])}, which died" if died else "a rank that raised an error"
    for entry in lost:
        entry.traceback = [line for line in entry.traceback[:-1] if not line.startswith("in ")]
    # Whether gloo told a rank of the death before we freed it is a matter of microseconds.
    waiting = [entry for entry in outcomes if died and entry.state == "freed" and pending(entry)]
    for entry in [*lost, *waiting]:
        entry.state, entry.error, entry.note = "lost", "", f"waited for {partners}"


def _how(entry: RankOutcome, cell: str) -> str:
    """Say how a process ended, and in which line."""
    if entry.exit_code is None:
        how = "is lost: the controller no longer hears it"
    elif entry.exit_code < 0:
        names = {each.value: each.name for each in signal.Signals}  # without most of the real-time signals
        how = f"was killed by {names.get(-entry.exit_code, f'signal {-entry.exit_code}')}"
    else:
        how = f"ended with exit status {entry.exit_code}"
    lines = cell.splitlines()
    if 0 < entry.last_line <= len(lines):
        how += f" in line {entry.last_line}:  {lines[entry.last_line - 1].strip()}"
        return how
    return f"{how}."


def _inside(sentence: str) -> str:
    """Return a sentence as it stands behind a colon."""
    return sentence.replace("The ", "the ", 1) if sentence.startswith("The ") else sentence


def _why_died(entry: RankOutcome, outcomes: list[RankOutcome]) -> tuple[str, str]:
    differing = diagnosis.disagreement({other.rank: other.seen for other in outcomes if other.seen})
    if differing is not None:
        return f"{_inside(differing.sentence)} {differing.cause}", differing.mend
    if entry.memory:
        return entry.memory, "use a smaller tensor, batch or model, fewer ranks, or a higher limit."
    if sizes := lastwords.too_much(entry.last_words):
        return (
            f"another rank sent it {sizes[0]} bytes where it expected {sizes[1]}: the tensors of one call differ "
            "in shape or type, and gloo ends the process then.",
            "make the tensors of that call equal in shape and type on all its ranks.",
        )
    if said := lastwords.exception(entry.last_words):
        return f"compiled code ended the process: {said}", ""
    if entry.exit_code == -signal.SIGKILL:
        return (
            "something outside of it: kill -9, a batch system's limit, or the system when memory is short.",
            "see how much memory the cell needs.",
        )
    if entry.exit_code == -signal.SIGSEGV:
        return "compiled code used memory that is not its own.", ""
    return "", ""


def _of_error(raised: list[RankOutcome]) -> tuple[str, str, str]:
    first, message = raised[0], _first_sentence(raised[0].error)
    same = name_ranks([entry.rank for entry in raised if _first_sentence(entry.error) == message])
    if first.error.startswith("SystemExit"):
        status = message.partition(": ")[2] or "0"
        return f"{same} called sys.exit({status}): a program would end here; a rank stays.", "", ""
    cause, mend = next(((cause, mend) for part, cause, mend in HINTS if part in first.error), ("", ""))
    return f"{same} raised {message}", cause, mend


def _first_sentence(error: str) -> str:
    """Return the first line of an error, and of a long line its first sentence."""
    line = error.splitlines()[0]
    return line if len(line) <= LONG else re.split(r"(?<=[.!?]) ", line, maxsplit=1)[0]


def _advice(outcomes: list[RankOutcome], dead: list[int]) -> str:
    kept = "All ranks answer again and keep their variables."
    if dead:
        kept = f"The next cell starts {name_ranks(dead)} again, without variables; the others keep theirs."
    if len(dead) == len(outcomes):
        kept = "The next cell starts all ranks again, without variables."
    grouped = any(state_of(entry).groups for entry in outcomes)
    return f"{kept} {GROUPS_GONE}" if grouped or dead else kept


def _details(outcomes: list[RankOutcome]) -> list[tuple[list[int], str]]:
    """Return what the report folds away: the calls that ranks were in, and their latest collectives."""
    details: dict[str, list[int]] = {}
    for entry in outcomes:
        state = state_of(entry)
        lines = [f"in {' → '.join(state.stack)}"] if state.stack else []
        for called in state.collectives[-5:]:
            ends = "done" if called.done else "waits"
            ranks = name_ranks(state.groups.get(called.group, []))
            shape = mismatch.shape(called)
            told = f"{called.number}. {called.name} of {ranks}{', ' + shape if shape else ''}: {ends}"
            lines.append(told)
        if lines:
            details.setdefault("\n".join(lines), []).append(entry.rank)
    return [(ranks, text) for text, ranks in details.items()]
