"""Ranks whose processes have ended: how, in which statement, and the likely cause.

Pure: reads what the system, the ranks that are left and the dead rank's last words have told.
"""

from __future__ import annotations

import ast
import builtins
import re
import signal
import warnings
from collections.abc import Sequence

from ..outcome import RankOutcome
from ..system.backends import BACKENDS, sent_too_much
from . import mismatch
from .evidence import inside

ABORT = re.compile(r"what\(\):\s*(.+)")  # the message of a C++ exception that nobody caught
ASSERTION = re.compile(r"Assertion `(.+?)` failed")  # in a kernel

MODULES = ("os", "signal", "sys", "time", "ctypes", "torch", "dist")  # with these names, as everybody imports them


def how(entry: RankOutcome, cell: str) -> str:
    """Say how a process ended, and in which statement.

    Args:
        entry: of the dead rank.
        cell: text of the cell, "" where it was a program.
    """
    if entry.exit_code is None:
        ended = "is lost: the controller no longer hears it"
    elif entry.exit_code < 0:
        names = {each.value: each.name for each in signal.Signals}  # without most of the real-time signals
        ended = f"was killed by {names.get(-entry.exit_code, f'signal {-entry.exit_code}')}"
    else:
        ended = f"ended with exit status {entry.exit_code}"
    lines = cell.splitlines()
    if 0 < entry.last_line <= len(lines):
        return f"{ended} {_place(cell, entry.last_line)}:  {lines[entry.last_line - 1].strip()}"
    return f"{ended}."


def _place(cell: str, line: int) -> str:
    """Say where in a cell a rank was, no more exactly than its bookmark tells: that has no line inside a statement.

    Args:
        cell: its text.
        line: in which the statement begins, see :mod:`ranklab.rank.bookmark`.
    """
    begins = f"in the statement that begins in line {line}"
    try:
        with warnings.catch_warnings(action="ignore"):  # the rank has compiled the cell, and warned
            statements = ast.parse(cell).body
    except SyntaxError:  # what IPython alone understands, such as %time
        return begins
    here = [each for each in statements if each.lineno <= line <= (each.end_lineno or line)]
    if not here or any(each.lineno != each.end_lineno for each in here):
        return begins
    called = [node.func for each in here for node in ast.walk(each) if isinstance(node, ast.Call)]
    return f"in line {line}, or in what it calls" if any(map(_own, called)) else f"in line {line}"


def _own(function: ast.expr) -> bool:
    """Say whether a call may lead to the reader's own code: to a function, or to a method of an object."""
    while isinstance(function, ast.Attribute):
        function = function.value
    return not isinstance(function, ast.Name) or not (hasattr(builtins, function.id) or function.id in MODULES)


def why(entry: RankOutcome, outcomes: Sequence[RankOutcome], what: str = "cell") -> tuple[str, str]:
    """Return the likely cause of a death, and what to do about it; "" where nothing is known.

    Args:
        entry: of the dead rank.
        outcomes: of all ranks.
        what: what ran there, "cell" or "program".
    """
    differing = mismatch.find({other.rank: other.seen for other in outcomes if other.seen})
    if differing is not None:
        return f"{inside(differing.sentence)} {differing.cause}", differing.fix
    if entry.memory:
        return entry.memory, "use a smaller tensor, batch or model, fewer ranks, or a higher limit."
    if told := sent_too_much(entry.last_words):
        backend, sent, room = told
        if _elsewhere(entry, outcomes):
            return (
                f"another rank sent it {sent} bytes where it expected {room}, and {backend.title} ends the process "
                "then. The ranks may be in different calls: one of them has left out a collective (in DDP perhaps a "
                "backward that was skipped). Or the tensors of one call differ in shape or type.",
                "compare the lines: all ranks must call the same collectives in the same order, with tensors equal in "
                "shape and type.",
            )
        return (
            f"another rank sent it {sent} bytes where it expected {room}: the tensors of one call differ "
            f"in shape or type, and {backend.title} ends the process then.",
            "make the tensors of that call equal in shape and type on all its ranks.",
        )
    for hint in (hint for backend in BACKENDS for hint in backend.deaths if hint.part in entry.last_words):
        failed = ASSERTION.search(entry.last_words)
        return f"{hint.cause} It failed at `{failed[1]}`." if failed else hint.cause, hint.fix
    if uncaught := ABORT.search(entry.last_words):
        return f"compiled code ended the process: {uncaught[1].strip()}", ""
    if entry.exit_code == -signal.SIGKILL:
        return (
            "something outside of it: kill -9, a batch system's limit, or the system when memory is short.",
            f"see how much memory the {what} needs.",
        )
    if entry.exit_code == -signal.SIGSEGV:
        return "compiled code used memory that is not its own.", ""
    return "", ""


def _elsewhere(entry: RankOutcome, outcomes: Sequence[RankOutcome]) -> bool:
    """Say whether another rank was in a line that is not the one in which a rank died, as far as both are known."""
    lines = [[line for line in other.traceback if line.startswith("line ")] for other in outcomes if other is not entry]
    return entry.last_line > 0 and any(
        len(told) > 1 or not told[0].startswith(f"line {entry.last_line}:") for told in lines if told
    )
