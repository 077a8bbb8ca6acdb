"""One backward on each rank: what was computed, which sums were under way, what was waited for."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from ..palette import INK, MUTED, PAPER, rank_color
from .canvas import lanes, write_title
from .recording import chosen, keep, ms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOP, MIDDLE, BOTTOM = -0.42, -0.06, 0.42  # of a lane: computation above, sums below


Run = Sequence[Mapping[str, Any]]


def backward(runs: Mapping[str, Run], title: str = "", drawn: Sequence[str] | None = None) -> Figure:
    """Draw backwards below each other: on each rank the computation, the sums below it, and the wait at the end.

    Args:
        runs: for each run its name, and for each of its ranks, in rank order, ``began`` and ``ended`` of backward,
            ``ready``, when each gradient was complete, and ``sums``, a ``(label, launched, arrived)`` for each sum;
            all in seconds on one clock. Each run begins at its earliest ``began``.
        title: one sentence above the lanes.
        drawn: the names of the runs that the picture shows; all by default. On the site a slider goes through all.

    Returns:
        A figure with time in milliseconds: slices are gradients as they get ready, open bars are sums from launch to
        arrival, hatched is what backward waits after its last gradient.

    Raises:
        WorldError: no rank, no gradient, or something that ends before it begins, as a backward that ended before
            its last gradient was ready.

    Used in the chapter *buckets*.
    """
    if not runs or not all(ranks and all(rank["ready"] for rank in ranks) for ranks in runs.values()):
        raise WorldError("backward() needs at least one rank and one gradient in each run.")
    pictured = {name: runs[name] for name in chosen("backward", runs, drawn)}
    rows = sum(len(ranks) + 1 for ranks in pictured.values())
    figure, axes = lanes(rows)
    figure.set_figheight(0.9 + 0.8 * rows)
    ticks, row, longest = {}, 0, 0.0
    for name, ranks in pictured.items():
        zero = min(rank["began"] for rank in ranks)
        axes.text(0, row + 0.2, f" {name}", va="center", color=INK, fontsize=13, weight="bold")
        for number, rank in enumerate(ranks):
            row += 1
            ticks[row] = f"rank {number}"
            longest = max(longest, _lane(axes, row, number, rank, zero))
        row += 1
    axes.set_ylim(row - 0.4, -0.3)
    axes.set_yticks(list(ticks), ticks.values())
    axes.set_xlabel("time in ms: slices are gradients, open bars sums, hatching is waiting")
    axes.set_xlim(0, longest * 1.01)
    write_title(axes, title)
    keep(figure, "backward", title=title, runs=[[name, _values(ranks)] for name, ranks in runs.items()])
    return figure


def _values(ranks: Run) -> list[dict[str, Any]]:
    """Return a run as the page holds it: milliseconds since its earliest ``began``."""
    zero = min(rank["began"] for rank in ranks)
    return [
        {
            "began": ms(rank["began"], zero),
            "ready": [ms(moment, zero) for moment in rank["ready"]],
            "sums": [[label, ms(left, zero), ms(arrived, zero)] for label, left, arrived in rank["sums"]],
            "ended": ms(rank["ended"], zero),
        }
        for rank in ranks
    ]


def _lane(axes: Any, row: int, number: int, rank: Mapping[str, Any], zero: float) -> float:
    """Draw one rank and return where the last of it ends, in milliseconds: a sum may arrive after backward."""
    color = rank_color(number)

    def bar(start: float, end: float, top: float, bottom: float, **look: Any) -> None:
        if end < start:
            raise WorldError(f"On rank {number} something ends before it begins.")
        left, width = 1e3 * (start - zero), 1e3 * (end - start)
        axes.barh(row + top, width, left=left, height=bottom - top, align="edge", **look)

    edges = [rank["began"], *rank["ready"]]
    for start, end in itertools.pairwise(edges):
        bar(start, end, TOP, MIDDLE, color=color, edgecolor=PAPER, linewidth=1)
    if rank["ended"] != edges[-1]:
        bar(edges[-1], rank["ended"], TOP, MIDDLE, color=PAPER, edgecolor=MUTED, hatch="////", linewidth=0)
    levels = _levels(rank["sums"])
    thick = (BOTTOM - MIDDLE) / (max(levels, default=0) + 1)
    for (label, start, end), level in zip(rank["sums"], levels, strict=True):
        top = MIDDLE + level * thick
        bar(start, end, top, top + thick, facecolor=PAPER, edgecolor=color, linewidth=1.6)
        if thick > 0.15:
            middle = 1e3 * ((start + end) / 2 - zero)
            axes.text(middle, row + top + thick / 2, label, ha="center", va="center", fontsize=9, clip_on=True)
    return 1e3 * (max([rank["ended"], *(end for *_, end in rank["sums"])]) - zero)


def _levels(sums: Sequence[tuple[str, float, float]]) -> list[int]:
    """Return a level for each sum, so that sums under way at the same time lie below each other."""
    free: list[float] = []  # when the last sum of each level has arrived
    levels = []
    for _, start, end in sums:
        level = next((level for level, until in enumerate(free) if until <= start), len(free))
        free[level : level + 1] = [end]
        levels.append(level)
    return levels
