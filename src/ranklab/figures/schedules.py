"""Pipeline schedules: what each rank computed when, and below it what was predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from ..palette import INK, MUTED, PAPER, label_color, rank_color
from .canvas import lanes, write_title
from .recording import chosen, keep, ms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED, PREDICTED = (-0.4, 0.5), (0.14, 0.2)  # of a lane: top and height
NUMBER = 0.022  # where a bar is narrower than this part of the axis, there is no room for numbers
FEW_MS = 0.2  # seconds; of longer schedules the page needs no tenth of a millisecond

Step = tuple[str, int, float, float]


Ranks = Sequence[Sequence[Step]]


def schedules(runs: Mapping[str, tuple[Ranks, Ranks]], title: str = "", drawn: Sequence[str] | None = None) -> Figure:
    """Draw schedules of a pipeline below each other: on each rank what was measured, and the prediction below it.

    Args:
        runs: for each schedule its name, what was measured, and what was predicted. Both hold, for each rank in rank
            order, its steps ``(what, micro-batch, start, end)`` with "F" or "B", in seconds on one clock. The earliest
            start of either becomes zero.
        title: one sentence above the lanes.
        drawn: the names of the schedules that the picture shows; all by default. On the site one chooses among all.

    Returns:
        A figure with time in milliseconds. Forward is filled, backward is open; each has its micro-batch's number
        where the prediction leaves room for all of a schedule. The thin bars are the prediction.

    Raises:
        WorldError: nothing to draw, different numbers of ranks measured and predicted, a step that is neither "F" nor
            "B", or one that ends before it begins.

    Used in the chapter *pipelines*.
    """
    if not runs or not all(ranks and all(ranks) for pair in runs.values() for ranks in pair):
        raise WorldError("schedules() needs at least one step on each rank, measured and predicted.")
    for name, pair in runs.items():
        if len(pair[0]) != len(pair[1]):
            told = f"{len(pair[0])} ranks measured and {len(pair[1])} predicted"
            raise WorldError(f"schedules() got {told} for {name!r}; give both for each rank.")
    pictured = {name: runs[name] for name in chosen("schedules", runs, drawn)}
    rows = sum(len(measured) + 1 for measured, _ in pictured.values())
    figure, axes = lanes(rows, colors=64)
    figure.set_figheight(1.1 + 0.46 * rows)
    spans = [_span(ranks) for pair in pictured.values() for ranks in pair]
    longest = max(end - start for start, end in spans)
    ticks, row = {}, 0
    for name, pair in pictured.items():
        axes.text(0, row + 0.2, f" {name}", va="center", color=INK, fontsize=13, weight="bold")
        room = min(end - start for steps in pair[1] for *_, start, end in steps) > NUMBER * longest
        for ranks, (top, height), measured in zip(pair, (MEASURED, PREDICTED), (True, False), strict=True):
            zero, _ = _span(ranks)
            for rank, steps in enumerate(ranks):
                ticks[row + 1 + rank] = f"rank {rank}"
                place = row + 1 + rank + top
                for step in steps:
                    _bar(axes, rank_color(rank) if measured else MUTED, place, height, step, zero)
                    if measured and room:
                        _number(axes, rank, place + height / 2, step, zero)
        row += 1 + len(pair[0])
    axes.set_ylim(row - 0.4, -0.3)
    axes.set_yticks(list(ticks), ticks.values())
    axes.set_xlabel("time in ms: forward filled, backward open; thin: predicted")
    axes.set_xlim(0, 1e3 * longest * 1.01)
    write_title(axes, title)
    values = [[name, *map(_values, pair)] for name, pair in runs.items()]
    keep(figure, "schedules", title=title, runs=values)
    return figure


def _values(ranks: Ranks) -> list[list[tuple[int, int, float, float]]]:
    """Return the steps of each rank as the page holds them: 0 or 1 for backward, and ms since the first step of all."""
    zero, end = _span(ranks)
    places = 0 if end - zero > FEW_MS else 1
    return [
        [
            (int(what == "B"), number, ms(start, zero, places), ms(end, zero, places))
            for what, number, start, end in steps
        ]
        for steps in ranks
    ]


def _span(ranks: Sequence[Sequence[Step]]) -> tuple[float, float]:
    """Return when the first step of all ranks begins and when the last one ends."""
    steps = [step for rank in ranks for step in rank]
    for what, number, start, end in steps:
        if what not in ("F", "B"):
            raise WorldError(f'A step is "F" or "B", not {what!r}.')
        if end < start:
            raise WorldError(f"{what}{number} ends before it begins.")
    return min(step[2] for step in steps), max(step[3] for step in steps)


def _bar(axes: Any, color: str, top: float, height: float, step: Step, zero: float) -> None:
    """Draw one step: forward filled, backward open."""
    what, _, start, end = step
    # Filled bars have a light edge, or neighbours would run into each other; it must not hide the edge of an open one.
    face, edge, depth = (color, PAPER, 1) if what == "F" else (PAPER, color, 2)
    look = {"facecolor": face, "edgecolor": edge, "linewidth": 1, "zorder": depth}
    axes.barh(top, 1e3 * (end - start), left=1e3 * (start - zero), height=height, align="edge", **look)


def _number(axes: Any, rank: int, middle: float, step: Step, zero: float) -> None:
    """Write the micro-batch's number into the bar of a step."""
    what, number, start, end = step
    ink = label_color(rank) if what == "F" else INK
    across = 1e3 * ((start + end) / 2 - zero)
    axes.text(across, middle + 0.02, str(number), ha="center", va="center", color=ink, fontsize=10.5, zorder=3)
