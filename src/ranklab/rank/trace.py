"""Tracebacks cut to the reader's own lines: those of the cells, and of modules that are the reader's.

Runs inside a rank, where the exception is still alive. Pure standard library.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from ..state import RECEIVES, SENDS, RankState
from ..system.backends import anonymous

# ipykernel compiles each cell under <temporary directory>/ipykernel_<process id>/<hash of the cell>.py
CELL_MARK = "ipykernel_"
# Modules that are not the reader's: of libraries, of Python, of this package, and what torch.compile has written.
INSTALLED = re.compile(
    rf"<frozen |.*[/\\](?:site|dist)-packages[/\\]|.*[/\\]torchinductor_"
    rf"|{re.escape(sysconfig.get_path('stdlib') + os.sep)}|{re.escape(str(Path(__file__).parents[1]) + os.sep)}"
)
# How code that stands in no function is named: by Python, and of a cell by IPython 7.31 to 8.x ("<cell line: 3>").
OUTSIDE = ("<module>", "<cell line: ")
# Modules whose functions are public elsewhere, and modules that only wrap what the reader called.
PUBLIC = {"torch.distributed.distributed_c10d": "torch.distributed"}
# The arguments of point-to-point calls that name a rank, and how many library frames a report can show.
PEERS = ("src", "dst", "group_src", "group_dst")
DEPTH = 8
# Of a recursion a report shows so many of the first and of the last lines.
ENDS = 10
WRAPPERS = {
    *("torch.distributed.c10d_logger", "contextlib", "functools", "ranklab.rank.meeting"),
    *("ranklab.rank.streams", "ipykernel.iostream"),  # in which print() ends
}


def cut_traceback(error: BaseException, seen: frozenset[int] = frozenset()) -> list[str]:
    """Return the traceback of an error, cut to the frames that stand in cells or in the reader's modules.

    The last frame is named even where it stands in a library, because "in torch.distributed.all_reduce" is what
    a reader needs to know; its path and line number are not.

    Args:
        error: the exception, with its ``__traceback__``.
        seen: identities of the errors told already: ``raise e from e`` makes an error its own cause.

    Returns:
        Lines of plain text, without paths, process ids or colour codes, so that they are the same on every run.
        The last line is the exception itself.
    """
    if isinstance(error, SyntaxError) and error.lineno:
        return _syntax_error(error, error.lineno)
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
    # A library that sends or receives waits for that rank, as a cell would that did so itself.
    call = next((name for name in stack if name in RECEIVES + SENDS), stack[0] if stack else "")
    return RankState(
        lines=lines,
        call=call,
        peers=_peers(inside[names.index(call)]) if call else {},
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
    """Read a stack, outermost frame first: the reader's lines, and the library frames the last of them led to."""
    places = [(frame.f_code.co_filename, frame.f_code.co_name, number) for frame, number in stack]
    own = _own([file for file, _, _ in places])
    lines = _lines([places[place] for place in own], recent=True)
    return lines, [frame for frame, _ in stack[own[-1] + 1 :]] if own else []


def lines_of(frames: Sequence[Mapping[str, Any]], recent: bool) -> list[str]:
    """Return the reader's lines of a stack that torch's recorder has noted, as :func:`position` tells them.

    Args:
        frames: name, filename and line of each function, innermost first.
        recent: whether the present cell has called them.
    """
    places = [(frame["filename"], frame["name"], frame["line"]) for frame in reversed(frames)]
    return _lines([places[place] for place in _own([file for file, _, _ in places])], recent)


def _own(files: Sequence[str]) -> list[int]:
    """Return which frames are the reader's: those of cells, and of modules to which the last of these has led.

    Args:
        files: of each frame, outermost first.
    """
    cells: list[int] = []
    below: list[int] = []
    for place, file in enumerate(files):
        if CELL_MARK in file:
            cells.append(place)
            below = []
        elif cells and file.endswith(".py") and not _installed(file):
            below.append(place)
    return cells + below


def _installed(file: str) -> bool:
    torch = getattr(sys.modules.get("torch"), "__file__", None)  # built from source, it stands in no site-packages
    return bool(INSTALLED.match(file) or (torch and file.startswith(os.path.dirname(torch) + os.sep)))


def _lines(places: Sequence[tuple[str, str, int]], recent: bool) -> list[str]:
    lines = []
    for file, function, number in places:
        if CELL_MARK in file:
            lines.append(_line(file, function, number, earlier=not recent or file != places[0][0]))
        else:
            lines.append(f"{os.path.basename(file)} {_line(file, function, number)}")
    return _folded(lines)


def _folded(lines: Sequence[str]) -> list[str]:
    """Return lines of which a recursion has left only its ends; the last one stays the last."""
    short: list[str] = []
    for line, same in groupby(lines):
        count = sum(1 for _ in same)
        short += [line] * count if count < 4 else [line, f"… the same line {count - 2} times more", line]
    if len(short) <= 2 * ENDS + 1:
        return short
    return [*short[:ENDS], f"… {len(short) - 2 * ENDS} lines more", *short[-ENDS:]]


def _line(file: str, function: str, number: int, earlier: bool = False) -> str:
    where = f"line {number}"
    if not function.startswith(OUTSIDE):
        where += f" in {function}"
    if earlier:
        where += " (an earlier cell)"
    return _with_source(where, _source(file, number))


def _source(file: str, number: int) -> str:
    if CELL_MARK not in file:
        linecache.checkcache(file)  # the reader may have edited and reloaded it
    return linecache.getline(file, number)


def _with_source(where: str, source: str) -> str:
    return f"{where}:  {source.strip()}" if source.strip() else where


def _public_name(frame: FrameType) -> str:
    """Name a library function as its users write it: ``torch.distributed.all_reduce``; "" for a mere wrapper."""
    module = frame.f_globals.get("__name__", "")
    if module in WRAPPERS:
        return ""
    return f"{PUBLIC.get(module, module)}.{frame.f_code.co_qualname}"


def _syntax_error(error: SyntaxError, number: int) -> list[str]:
    """Return where code cannot be compiled: the cell itself, or what one of its lines has imported or compiled."""
    file = error.filename or ""
    lines, _ = _read(list(traceback.walk_tb(error.__traceback__)))
    where = f"{os.path.basename(file)} line {number}" if lines else f"line {number}"
    # Python knows the text where it has parsed it; an `await` that stands in no function is found later.
    lines.append(_with_source(where, error.text or _source(file, number)))
    return [*lines, f"{type(error).__name__}: {error.msg}"]
