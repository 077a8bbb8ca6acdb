"""What torch's own log says: taken out of what a rank wrote, and kept for a reader who asks.

A backend with threads of its own writes there at any moment: what became of an aborted group stands in the output of
the next cell, with the stacks of its C++ functions. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..outcome import RankOutcome
from ..system.backends import Backend

# "[rank0]:[E1122 10:30:00.123456789 ProcessGroup….cpp:683] [Rank 0] Watchdog caught …" (c10/util/Logging.cpp)
HEADER = re.compile(r"(?:\[rank\d+\]:)?\[[TIWEF]\d{4} [\d:.]+ (?:\d+ )?(?P<file>[\w./-]+?):\d+\] ?")
WHOSE = re.compile(r"\[(?:PG ID \d+ PG GUID [^\]]*|Rank \d+)\] *")
FRAME = re.compile(r"frame #\d+: |<omitting python frames>|#\d+ .+ from .+:\d+$|Exception raised from .+\(most recent")
# How an uncaught exception, and an assertion in a kernel, are told: these need no header.
UNCAUGHT = re.compile(r"terminate called |  what\(\): |\S+\.(?:cuh?|h|hpp):\d+: .*block: \[.*Assertion .* failed\.$")
# Further lines of a message.
FURTHER = re.compile(
    r"\s*$|Last error:|CUDA error: |Search for `cuda|CUDA kernel errors might be |For debugging consider passing |"
    r"Compile with `TORCH_USE_CUDA_DSA` |Device-side assertion tracking was not |Stack trace of the failed "
)
PLACE = re.compile(r"^(?:\[[\d\- :]+\] )?\S+:\d+:\d+ \[(\d+)\] ")  # host, process and thread
THREADS = re.compile(r"^\S*?([^/\s]+:\d+): .*block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] ")
PATH = re.compile(r"/\S*/(?=[^/\s]+)")
ADDRESS = re.compile(r"0x[0-9a-f]+")


def fold(entry: RankOutcome, backend: Backend) -> None:
    """Take torch's log out of what a rank wrote, where its backend writes there by itself.

    Args:
        entry: of the rank; its log is kept in it.
        backend: of the world.
    """
    if not backend.folds:
        return
    entry.stdout, first = _split(entry.stdout, backend)
    entry.stderr, second = _split(entry.stderr, backend)
    entry.torchs_log = _readable([*first, *second])


def fold_last_words(entry: RankOutcome, backend: Backend) -> None:
    """Keep what torch's log said in a rank before it died.

    Args:
        entry: of the rank; all of its last words stay, for the cause of its death.
        backend: see :func:`fold`.
    """
    if backend.folds:
        entry.torchs_log = _readable(_split(entry.last_words, backend)[1]) or entry.torchs_log


def joined(outcomes: Sequence[RankOutcome]) -> list[tuple[list[int], str]]:
    """Return the logs of all ranks, equal ones joined, with the ranks that wrote them."""
    groups: dict[str, list[int]] = {}
    for entry in outcomes:
        if entry.torchs_log:
            groups.setdefault(entry.torchs_log, []).append(entry.rank)
    return [(ranks, text) for text, ranks in groups.items()]


def _split(words: str, backend: Backend) -> tuple[str, list[str]]:
    """Return what is the reader's, and the lines of the log."""
    own = re.compile(backend.log) if backend.log else None
    rest: list[str] = []
    log: list[str] = []
    inside = False
    for line in words.splitlines(keepends=True):
        begins = any(pattern.match(line) for pattern in (HEADER, FRAME, UNCAUGHT))
        inside = begins or bool(own and own.match(line)) or (inside and bool(FURTHER.match(line)))
        (log if inside else rest).append(line)
    return "".join(rest), [line.rstrip() for line in log if line.strip()]


def _readable(lines: Sequence[str]) -> str:
    """Return the lines of a log without frames, times, places and what else differs on every run; each told once."""
    told = [line for line in lines if not FRAME.match(line)]
    told = [WHOSE.sub("", HEADER.sub(r"\g<file>: ", PLACE.sub("", line))) for line in told]
    told = [ADDRESS.sub("0x…", PATH.sub("…/", THREADS.sub(r"\1: ", line))) for line in told]
    left_out = len(lines) - len(told)
    frames = [f"… {left_out} lines of stacks left out …"] if left_out else []
    return "\n".join([*dict.fromkeys(line.strip() for line in told), *frames])
