"""Figures of what really happened, drawn from data that came from the ranks.

Every function returns a matplotlib figure: the last line of a cell shows it. Matplotlib is imported inside the
functions, because most cells draw nothing.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from .errors import WorldError
from .palette import INK, MUTED, PAPER, RULE, label_color, rank_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.0
LANE = 0.62
LARGE = 16  # a phone shows a figure at half its size
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
    axes.set_xlabel("time since the command in s")
    axes.set_xlim(0, last)
    _title(axes, title)
    return figure


def node_map(
    environments: Sequence[Mapping[str, str]],
    title: str = "",
    notes: Sequence[str] = (),
    marked: Collection[int] = (),
) -> Figure:
    """Draw nodes as boxes and ranks as tiles, from the environment that each rank has.

    Args:
        environments: for each rank, in rank order, a mapping with ``RANK``, ``LOCAL_RANK``, ``GROUP_RANK`` and
            ``WORLD_SIZE``, as text or numbers.
        title: one sentence above the nodes.
        notes: for each rank, in rank order, a word or two for the third line of its tile; none by default.
        marked: ranks whose tile has a thick outline.

    Returns:
        A figure; a tile shows the rank in large type and the local rank below it.

    Raises:
        WorldError: there are notes, but not one for each rank.

    Used in the chapter *rank-local-rank-world-size*.
    """
    from matplotlib.patches import FancyBboxPatch

    if notes and len(notes) != len(environments):
        raise WorldError(f"node_map() got {len(environments)} ranks and {len(notes)} notes; give one note a rank.")
    ranks = [{name: int(value) for name, value in environment.items()} for environment in environments]
    nodes = sorted({rank["GROUP_RANK"] for rank in ranks})
    counts = {node: sum(rank["GROUP_RANK"] == node for rank in ranks) for node in nodes}
    tile = 1.16 if notes else 0.9
    whole = max(len(ranks) + 0.55 * len(nodes) - 0.3, 4.2)
    size = LARGE * min(1.0, 6.2 / whole)
    figure, axes = _canvas(2.35 if notes else 2.0)

    def box(x, y, width, height, **look):
        style = "round,pad=0,rounding_size=.08"
        axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, **look))

    left = 0.0
    starts = {}
    for node in nodes:
        starts[node] = left
        width = counts[node] + 0.2
        box(left, 0, width, tile + 0.55, fc="none", ec=MUTED, lw=1.5)
        axes.text(left + 0.12, tile + 0.33, f"node {node}", va="center", color=INK, fontsize=size)
        left += width + 0.35
    for rank, note in zip(ranks, notes or [""] * len(ranks), strict=True):
        x = starts[rank["GROUP_RANK"]] + 0.15 + rank["LOCAL_RANK"]
        number = rank["RANK"]
        outline = {"ec": INK, "lw": 4} if number in marked else {"ec": "none"}
        box(x, 0.12, 0.9, tile, fc=rank_color(number), **outline)
        lines = [f"rank {number}", f"local {rank['LOCAL_RANK']}", *filter(None, [note])]
        for line, text in enumerate(lines):
            axes.text(
                x + 0.45,
                0.12 + tile * (1 - (line + 0.72) / (len(lines) + 0.44)),
                text,
                ha="center",
                va="center",
                color=label_color(number),
                fontsize=size,
                weight="normal" if line else "bold",
            )
    axes.set_xlim(-0.05, whole)
    axes.set_ylim(-0.05, tile + 0.6)
    axes.set_aspect("equal", anchor="W")
    _title(axes, title)
    return figure


def chart(title: str, across: str, up: str, height: float = 3.4) -> tuple[Figure, Axes]:
    """Make an empty chart in the style of the book, for data that a chapter draws itself.

    Args:
        title: one sentence above it: what it shows.
        across: what the horizontal axis is, with its unit.
        up: what the vertical axis is, with its unit.
        height: in inches.

    Returns:
        The figure, which the last line of a cell shows, and its matplotlib axes.

    Used in the chapter *two-computers*.
    """
    figure, axes = _canvas(height)
    axes.set_axis_on()
    axes.grid(color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    _title(axes, title)
    return figure, axes


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
    from PIL import Image  # matplotlib brings it

    class Drawing(Figure):
        """A figure that a notebook shows as PNG by itself, without pyplot and its hidden current figure."""

        def _repr_png_(self) -> bytes:
            drawn, small = io.BytesIO(), io.BytesIO()
            self.savefig(drawn, format="png", dpi=2 * self.dpi)
            # A palette holds the few colours of a figure in a third of the bytes; every page loads them.
            Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(small, "png", optimize=True)
            return small.getvalue()

    with matplotlib.rc_context(STYLE):
        figure = Drawing(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots()
    axes.set_axis_off()
    return figure, axes


def _title(axes, title: str) -> None:
    if title:
        axes.set_title(title, loc="left", fontsize=14, color=INK)
