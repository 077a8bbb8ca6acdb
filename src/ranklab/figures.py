"""Figures of what really happened, drawn from data that came from the ranks.

Every function returns a matplotlib figure: the last line of a cell shows it. Matplotlib is imported inside the
functions, because most cells draw nothing.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .errors import WorldError
from .palette import INK, MUTED, PAPER, RULE, label_color, rank_color

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.0
LANE = 0.62
STYLE = {
    "font.size": 12,
    "axes.edgecolor": RULE,
    "axes.labelcolor": INK,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.dpi": 100,
}

Event = tuple[str, float, float]


def timeline(events: Sequence[Sequence[Event]], title: str = "") -> Figure:
    """Draw what each rank did when, one lane a rank, in the rank's colour.

    Args:
        events: for each rank, in rank order, its events ``(label, start, end)`` in seconds on one clock
            (``time.time()`` on one machine). The earliest start becomes zero.
        title: one sentence above the lanes.

    Returns:
        A figure with time in milliseconds or seconds, whichever reads better.

    Raises:
        WorldError: no events, or an event that ends before it starts.

    Used from the chapter *your-first-ranks* on.
    """
    flat = [event for lane in events for event in lane]
    if not flat:
        raise WorldError("timeline() needs at least one event: (label, start, end) in seconds.")
    for label, start, end in flat:
        if end < start:
            raise WorldError(f"The event {label!r} ends before it starts.")
    zero = min(start for _, start, _ in flat)
    span = max(end for _, _, end in flat) - zero
    scale, unit = (1.0, "s") if span > 2 else (1e3, "ms")
    figure, axes = _lanes(len(events))
    for rank, lane in enumerate(events):
        for label, start, end in lane:
            left, width = (start - zero) * scale, (end - start) * scale
            axes.barh(rank, width, left=left, height=LANE, color=rank_color(rank), edgecolor=PAPER, linewidth=1)
            axes.text(
                left + width / 2,
                rank,
                label,
                ha="center",
                va="center",
                color=label_color(rank),
                fontsize=11,
                clip_on=True,
            )
    axes.set_xlabel(f"time in {unit}")
    axes.set_xlim(0, span * scale)
    _title(axes, title)
    return figure


def launches(starts: Mapping[str, Sequence[Sequence[Event]]], title: str = "") -> Figure:
    """Draw how the processes of several launches started, one below the other, on a clock that begins with each.

    Args:
        starts: for each launch its name, and for each of its ranks, in rank order, the events
            ``(label, start, end)`` in seconds since the command was given. The first event is what happened before
            the process existed.
        title: one sentence above the lanes.

    Returns:
        A figure with time in seconds; the first event of a lane is grey, the others have the rank's colour.

    Used in the chapter *from-spawn-to-torchrun*.
    """
    last = max(end for ranks in starts.values() for lane in ranks for _, _, end in lane)
    lanes = sum(len(ranks) for ranks in starts.values())
    figure, axes = _lanes(lanes + len(starts))
    ticks, row = {}, 0
    for name, ranks in starts.items():
        axes.text(0, row + 0.25, f" {name}", va="center", color=INK, fontsize=13, weight="bold")
        for rank, lane in enumerate(ranks):
            row += 1
            ticks[row] = f"rank {rank}"
            for number, (label, start, end) in enumerate(lane):
                color, ink = (RULE, INK) if number == 0 else (rank_color(rank), label_color(rank))
                axes.barh(row, end - start, left=start, height=0.8, color=color, edgecolor=PAPER, linewidth=1)
                if end - start > 0.017 * last * len(label):  # a label that has room
                    axes.text((start + end) / 2, row, label, ha="center", va="center", color=ink, fontsize=12)
        row += 1
    axes.set_yticks(list(ticks), ticks.values())
    figure.colors = 128
    axes.set_xlabel("time since the command in s")
    axes.set_xlim(0, last)
    _title(axes, title)
    return figure


def node_map(environments: Sequence[Mapping[str, str]], title: str = "") -> Figure:
    """Draw nodes as boxes and ranks as tiles, from the environment that each rank has.

    Args:
        environments: for each rank, in rank order, a mapping with ``RANK``, ``LOCAL_RANK``, ``GROUP_RANK`` and
            ``WORLD_SIZE``, as text or numbers.
        title: one sentence above the nodes.

    Returns:
        A figure; a tile shows the rank in large type and the local rank below it.

    Used in the chapter *rank-local-rank-world-size*.
    """
    from matplotlib.patches import FancyBboxPatch

    ranks = [{name: int(value) for name, value in environment.items()} for environment in environments]
    nodes = sorted({rank["GROUP_RANK"] for rank in ranks})
    counts = {node: sum(rank["GROUP_RANK"] == node for rank in ranks) for node in nodes}
    figure, axes = _canvas(1.9)
    left = 0.0
    starts = {}
    for node in nodes:
        starts[node] = left
        width = counts[node] + 0.2
        axes.add_patch(
            FancyBboxPatch(
                (left, 0), width, 1.45, boxstyle="round,pad=0,rounding_size=.08", fc="none", ec=MUTED, lw=1.5
            )
        )
        axes.text(left + 0.12, 1.22, f"node {node}", va="center", color=INK)
        left += width + 0.35
    for rank in ranks:
        x = starts[rank["GROUP_RANK"]] + 0.15 + rank["LOCAL_RANK"]
        number = rank["RANK"]
        axes.add_patch(
            FancyBboxPatch(
                (x, 0.12), 0.9, 0.9, boxstyle="round,pad=0,rounding_size=.08", fc=rank_color(number), ec="none"
            )
        )
        ink = label_color(number)
        axes.text(x + 0.45, 0.66, f"rank {number}", ha="center", va="center", color=ink, fontsize=14, weight="bold")
        axes.text(x + 0.45, 0.34, f"local {rank['LOCAL_RANK']}", ha="center", va="center", color=ink, fontsize=11)
    axes.set_xlim(-0.05, max(left - 0.3, 4.2))
    axes.set_ylim(-0.05, 1.6)
    axes.set_aspect("equal")
    _title(axes, title)
    return figure


def _lanes(count: int):
    figure, axes = _canvas(0.9 + 0.5 * count)
    axes.set_axis_on()
    axes.set_yticks(range(count), [f"rank {rank}" for rank in range(count)])
    axes.set_ylim(count - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def _canvas(height: float):
    import matplotlib
    from matplotlib.figure import Figure

    class Drawing(Figure):
        """A figure that a notebook shows as PNG by itself, without pyplot and its hidden current figure."""

        colors = 0

        def _repr_png_(self) -> bytes:
            stream = io.BytesIO()
            self.savefig(stream, format="png", dpi=2 * self.dpi, metadata={"Software": None})
            return _fewer_colors(stream, self.colors) if self.colors else stream.getvalue()

    with matplotlib.rc_context(STYLE):
        figure = Drawing(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots()
    axes.set_axis_off()
    return figure, axes


def _fewer_colors(stream: io.BytesIO, count: int) -> bytes:
    """Return a PNG with a palette: a third of the bytes for a tall figure of few colours and much text."""
    from PIL import Image

    fewer = io.BytesIO()
    Image.open(stream).convert("RGB").quantize(count).save(fewer, "PNG", optimize=True)
    return fewer.getvalue()


def _title(axes, title: str) -> None:
    if title:
        axes.set_title(title, loc="left", fontsize=12, color=INK)
