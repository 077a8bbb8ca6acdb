"""The paper that figures are drawn on: size, type, colours, and the PNG that a notebook stores."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from ..palette import INK, MUTED, PAPER, RULE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.0
LARGE = 16  # points; a phone shows a figure at half its size
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


def chart(title: str, across: str, up: str, height: float = 3.4) -> tuple[Figure, Axes]:
    """Make an empty chart in the style of the book, for data that a chapter draws itself.

    Args:
        title: one sentence above it: what it shows.
        across: what the horizontal axis is, with its unit.
        up: what the vertical axis is, with its unit.
        height: in inches.

    Returns:
        The figure, which the last line of a cell shows, and its matplotlib axes.

    Used from the chapter *why-distribute* on.
    """
    figure, axes = canvas(height)
    axes.set_axis_on()
    axes.grid(color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    write_title(axes, title)
    return figure, axes


def charts(titles: list[str], across: str, up: str, columns: int = 2, height: float = 5.6) -> tuple[Figure, list[Axes]]:
    """Make empty charts side by side that share their axes, for data that is to be compared.

    Args:
        titles: one a chart, row by row: what it shows.
        across: what the horizontal axes are, with their unit.
        up: what the vertical axes are, with their unit.
        columns: how many stand beside each other.
        height: of all together, in inches.

    Returns:
        The figure, which the last line of a cell shows, and the matplotlib axes in the order of the titles.

    Raises:
        WorldError: there is no title, or the last row has fewer than the others.

    Used in the chapter *by-hand*.
    """
    if not titles or len(titles) % columns:
        told = f"{len(titles)} titles for rows of {columns}"
        raise WorldError(f"charts() got {told}: fill the last row, or give columns=.")
    figure, rows = grid(len(titles) // columns, columns, height, sharex=True, sharey=True)
    places = [axes for row in rows for axes in row]
    figure.supxlabel(across, color=INK, fontsize=12)
    figure.supylabel(up, color=INK, fontsize=12)
    for axes, title in zip(places, titles, strict=True):
        axes.grid(color=RULE, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_title(title, loc="left", fontsize=13, color=INK)
    return figure, places


def grid(rows: int, columns: int, height: float, **share: Any) -> tuple[Figure, list[list[Axes]]]:
    """Make a figure, ``height`` inches high, with axes in rows; ``share`` goes to matplotlib's ``subplots``."""
    import matplotlib

    figure, only = canvas(height)
    only.remove()
    with matplotlib.rc_context(STYLE):
        return figure, figure.subplots(rows, columns, squeeze=False, **share).tolist()


def lanes(count: int, colors: int = 256) -> tuple[Figure, Axes]:
    """Make an empty chart with one horizontal lane a rank, and so many colours in its PNG."""
    figure, axes = canvas(0.9 + 0.5 * count, colors)
    axes.set_axis_on()
    axes.set_yticks(range(count), [f"rank {rank}" for rank in range(count)])
    axes.set_ylim(count - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def canvas(height: float, colors: int = 256) -> tuple[Figure, Axes]:
    """Make a figure of the book's width, ``height`` inches high, with axes that are switched off.

    Args:
        height: in inches.
        colors: how many colours its PNG has; a figure of flat areas needs few, and is small with them.
    """
    import matplotlib
    from matplotlib.figure import Figure

    class Drawing(Figure):
        """A figure that a notebook shows as PNG by itself, without pyplot and its hidden current figure."""

        recording: dict[str, Any] | None = None  # the values it is drawn from: see recording.py

        def _repr_mimebundle_(self, **_: Any) -> tuple[dict, dict]:
            return {}, self.recording or {}

        def _repr_png_(self) -> bytes:
            return png(self, colors)

    with matplotlib.rc_context(STYLE):
        figure = Drawing(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots()
    axes.set_axis_off()
    return figure, axes


def png(figure: Figure, colors: int = 256) -> bytes:
    """Return the PNG of a figure that a notebook stores.

    Args:
        figure: drawn at twice its resolution, for screens that show so much.
        colors: see :func:`canvas`.
    """
    from PIL import Image  # matplotlib brings it

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=2 * figure.dpi)
    # A palette holds the few colours of a figure in a third of the bytes; every page loads them.
    Image.open(drawn).convert("RGB").quantize(colors, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()


def write_title(axes: Axes, title: str) -> None:
    """Write one sentence above the axes; "" writes none."""
    if title:
        axes.set_title(title, loc="left", fontsize=14, color=INK)
