"""Tracebacks cut to the reader's own lines.

Runs inside a rank, where the exception is still alive. Pure standard library.
"""

from __future__ import annotations

import contextlib
import linecache
import sys
import traceback
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any

from ..state import RankState
from ..system.backends import anonymous

# ipykernel compiles each cell under <temporary directory>/ipykernel_<process id>/<hash of the cell>.py
CELL_MARK = "ipykernel_"
# How code that stands in no function is named: by Python, and of a cell by IPython 7.31 to 8.x ("<cell line: 3>").
OUTSIDE = ("<module>", "<cell line: ")
# Modules whose functions are public elsewhere, and modules that only wrap what the reader called.
PUBLIC = {"torch.distributed.distributed_c10d": "torch.distributed"}
# The arguments of point-to-point calls that name a rank, and how many library frames a report can show.
PEERS = ("src", "dst", "group_src", "group_dst")
DEPTH = 8
WRAPPERS = {
    *("torch.distributed.c10d_logger", "contextlib", "functools", "ranklab.rank.meeting"),
    *("ranklab.rank.streams", "ipykernel.iostream"),  # in which print() ends
}


def cut_traceback(error: BaseException, seen: frozenset[int] = frozenset()) -> list[str]:
    """Return the traceback of an error, cut to the frames that stand in cells.

    The last frame is named even where it stands in a library, because "in torch.distributed.all_reduce" is what
    a reader needs to know; its path and line number are not.

    Args:
        error: the exception, with its ``__traceback__``.
        seen: identities of the errors told already: ``raise e from e`` makes an error its own cause.

    Returns:
        Lines of plain text, without paths, process ids or colour codes, so that they are the same on every run.
        The last line is the exception itself.
    """
    if isinstance(error, SyntaxError):
        return _syntax_error(error)
    lines = []
    seen |= {id(error)}
    if error.__cause__ is not None and id(error.__cause__) not in seen:
        lines += [*cut_traceback(error.__cause__, seen), "… which led to:"]
    lines += _frames(error.__traceback__)
    return [*lines, describe(error)]


def describe(error: BaseException) -> str:
    """Return ``Type: message``, whatever the message does when it is printed."""
    name = type(error).__name__
    try:
        message = str(error)
    except Exception as broken:
        message = f"<its message cannot be printed: str() raised {type(broken).__name__}>"
    message = anonymous(message)
    return f"{name}: {message}" if message else name


def printable(error: BaseException | None) -> BaseException | None:
    """Return an error, or one of the same name in its place where its message cannot be printed."""
    if error is None:
        return None
    try:
        str(error)
    except Exception:
        return type(type(error).__name__, (Exception,), {})(describe(error).partition(": ")[2])
    return error


def position(frame: FrameType | None) -> RankState:
    """Return where a running thread is: the lines, the call, its peers and the stack.

    Args:
        frame: its innermost frame.
    """
    frames = []
    while frame is not None:
        frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    lines, inside = _read(frames[::-1])
    names = [_public_name(entry) for entry in inside]
    stack = [name for name in names if name]
    return RankState(
        lines=lines,
        call=stack[0] if stack else "",
        peers=_peers(inside[names.index(stack[0])]) if stack else {},
        stack=stack[:DEPTH],
    )


def _peers(frame: FrameType) -> dict[str, int]:
    """Read the other rank out of the arguments of ``send``, ``recv`` and their kind."""
    found = {name: frame.f_locals[name] for name in PEERS if isinstance(frame.f_locals.get(name), int)}
    group, distributed = frame.f_locals.get("group"), sys.modules.get("torch.distributed")
    if group is None or distributed is None:
        return found
    for name in found.keys() & set(PEERS[2:]):
        with contextlib.suppress(ValueError, RuntimeError, KeyError):  # torch refuses it then, in its own words
            found[name] = distributed.get_global_rank(group, found[name])
    return found


def _frames(tb: TracebackType | None) -> list[str]:
    lines, inside = _read(list(traceback.walk_tb(tb)))
    call = next(filter(None, map(_public_name, inside)), "")
    return [*lines, f"in {call}"] if call else lines


def _read(stack: list[tuple[FrameType, int]]) -> tuple[list[str], list[FrameType]]:
    """Read a stack, outermost frame first: the lines in cells, and the library frames the last of them led to."""
    lines: list[str] = []
    inside: list[FrameType] = []
    cell = ""
    for frame, number in stack:
        code = frame.f_code
        if CELL_MARK in code.co_filename:
            cell = cell or code.co_filename
            lines.append(_line(code.co_filename, code.co_name, number, earlier=code.co_filename != cell))
            inside = []
        elif lines:
            inside.append(frame)
    return lines, inside


def lines_of(frames: Sequence[Mapping[str, Any]], recent: bool) -> list[str]:
    """Return the lines in cells of a stack that torch's recorder has noted, as :func:`position` tells them.

    Args:
        frames: name, filename and line of each function, innermost first.
        recent: whether the present cell has called them.
    """
    inside = [frame for frame in reversed(frames) if CELL_MARK in frame["filename"]]
    return [
        _line(frame["filename"], frame["name"], frame["line"], not recent or frame["filename"] != inside[0]["filename"])
        for frame in inside
    ]


def _line(file: str, function: str, number: int, earlier: bool) -> str:
    where = f"line {number}"
    if not function.startswith(OUTSIDE):
        where += f" in {function}"
    if earlier:
        where += " (an earlier cell)"
    source = linecache.getline(file, number).strip()
    return f"{where}:  {source}" if source else where


def _public_name(frame: FrameType) -> str:
    """Name a library function as its users write it: ``torch.distributed.all_reduce``; "" for a mere wrapper."""
    module = frame.f_globals.get("__name__", "")
    if module in WRAPPERS:
        return ""
    return f"{PUBLIC.get(module, module)}.{frame.f_code.co_qualname}"


def _syntax_error(error: SyntaxError) -> list[str]:
    lines = [f"line {error.lineno}:  {(error.text or '').strip()}"]
    return [*lines, f"{type(error).__name__}: {error.msg}"]
