"""What ranks did when: one lane a rank, in the rank's colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from ..palette import INK, PAPER, RULE, label_color, rank_color
from .canvas import lanes, write_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LANE = 0.62
LETTER = 0.017  # part of the axis that a letter of a label takes

Event = tuple[str, float, float]


def timeline(events: Sequence[Sequence[Event]], title: str = "") -> Figure:
    """Draw what each rank did when, one lane a rank, in the rank's colour.

    Args:
        events: for each rank, in rank order, its events ``(label, start, end)`` in seconds on one clock
            (``time.time()`` on one machine). The earliest start becomes zero.
        title: one sentence above the lanes.

    Returns:
        A figure with time in milliseconds or seconds, whichever reads better. A label that is longer than its event
        is left out.

    Raises:
        WorldError: no events, none that takes time, or an event that ends before it starts.

    Used from the chapter *your-first-ranks* on.
    """
    zero, last = _ends("timeline", events)
    span = last - zero
    scale, unit = (1.0, "s") if span > 2 else (1e3, "ms")
    figure, axes = lanes(len(events))
    for rank, lane in enumerate(events):
        for label, start, end in lane:
            left, width = (start - zero) * scale, (end - start) * scale
            axes.barh(rank, width, left=left, height=LANE, color=rank_color(rank), edgecolor=PAPER, linewidth=1)
            label = str(label)  # a number names a step, too
            if end - start > LETTER * span * len(label):
                look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 11, "clip_on": True}
                axes.text(left + width / 2, rank, label, color=label_color(rank), **look)
    axes.set_xlabel(f"time in {unit}")
    axes.set_xlim(0, span * scale)
    write_title(axes, title)
    return figure


def launches(starts: Mapping[str, Sequence[Sequence[Event]]], title: str = "") -> Figure:
    """Draw how the processes of several launches started, one below the other, on a clock that begins with each.

    Args:
        starts: for each launch its name, and for each of its ranks, in rank order, the events
            ``(label, start, end)`` in seconds since the command was given. The first event is what happened before
            the process existed.
        title: one sentence above the lanes.

    Returns:
        A figure with time in seconds; the first event of a lane is grey, the others have the rank's colour. A label
        that is longer than its event is left out.

    Raises:
        WorldError: no events, none that takes time, or an event that ends before it starts.

    Used in the chapter *from-spawn-to-torchrun*.
    """
    _, last = _ends("launches", [lane for ranks in starts.values() for lane in ranks])
    rows = sum(len(ranks) + 1 for ranks in starts.values())
    figure, axes = lanes(rows)
    ticks, row = {}, 0
    for name, ranks in starts.items():
        axes.text(0, row + 0.25, f" {name}", va="center", color=INK, fontsize=13, weight="bold")
        for rank, lane in enumerate(ranks):
            row += 1
            ticks[row] = f"rank {rank}"
            for number, (label, start, end) in enumerate(lane):
                color, ink = (RULE, INK) if number == 0 else (rank_color(rank), label_color(rank))
                axes.barh(row, end - start, left=start, height=0.8, color=color, edgecolor=PAPER, linewidth=1)
                label = str(label)
                if end - start > LETTER * last * len(label):
                    axes.text((start + end) / 2, row, label, ha="center", va="center", color=ink, fontsize=12)
        row += 1
    axes.set_yticks(list(ticks), ticks.values())
    axes.set_xlabel("time since the command in s")
    axes.set_xlim(0, last)
    write_title(axes, title)
    return figure


def _ends(who: str, lanes: Sequence[Sequence[Event]]) -> tuple[float, float]:
    """Return when the first event begins and when the last one ends."""
    events = [event for lane in lanes for event in lane]
    if not events:
        raise WorldError(f"{who}() needs at least one event: (label, start, end) in seconds.")
    for label, start, end in events:
        if end < start:
            raise WorldError(f"The event {label!r} ends before it starts.")
    first, last = min(start for _, start, _ in events), max(end for _, _, end in events)
    if last == first:
        raise WorldError(f"{who}() got events that take no time: end and start are {first:g} s.")
    return first, last
