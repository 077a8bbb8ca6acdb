"""What messages cost, drawn: measured times, the line through them, and how far each point lies off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from ..palette import INK, MUTED, RANK_COLORS, RULE
from .canvas import grid, write_title
from .recording import keep, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKS = ("o", "s", "^", "D")
Points = Sequence[tuple[float, float]]


def cost_fit(
    fitted: Mapping[str, Points],
    lines: Mapping[str, tuple[float, float]],
    unseen: Mapping[str, Points] | None = None,
    title: str = "",
) -> Figure:
    """Draw times against sizes with the line ``fixed + slope × size`` of each series, and the residuals below.

    Args:
        fitted: for each series the points that the line was fitted to, (bytes, seconds).
        lines: for each series its line, (seconds a call, seconds a byte).
        unseen: for each series points that the line has not seen; drawn hollow.
        title: one sentence above.

    Returns:
        The figure, which the last line of a cell shows.

    Raises:
        WorldError: no series, one without points or without a line, a size or a time that is not above zero (both
            axes are logarithmic), or a line that is not above zero where a point is.

    Used in the chapter *cost-of-talking*.
    """
    if not fitted:
        raise WorldError("cost_fit() needs at least one series of points: (bytes, seconds).")
    for name, points in fitted.items():
        _require(name, [*points, *(unseen or {}).get(name, ())], lines.get(name))
    from matplotlib.ticker import FuncFormatter

    figure, ((above,), (below,)) = grid(2, 1, 5.4, sharex=True, height_ratios=[3, 2])
    write_title(above, title)
    for number, (name, points) in enumerate(fitted.items()):
        color, mark = RANK_COLORS[number % len(MARKS)], MARKS[number % len(MARKS)]
        fixed, slope = lines[name]
        news = list((unseen or {}).get(name, ()))
        sizes = sorted(size for size, _ in [*points, *news])
        steps = [sizes[0] * (sizes[-1] / sizes[0]) ** (step / 60) for step in range(61)]
        above.plot(steps, [1e3 * (fixed + slope * size) for size in steps], color=color, linewidth=1.6)
        for kind, face in ((points, color), (news, "none")):
            label = name if kind is points else f"{name}, not fitted"
            if kind:
                style: dict[str, Any] = {"marker": mark, "linestyle": "", "color": color, "markersize": 8}
                style |= {"markerfacecolor": face, "markeredgewidth": 2}
                above.plot([size for size, _ in kind], [1e3 * took for _, took in kind], label=label, **style)
                off = [100 * (took / (fixed + slope * size) - 1) for size, took in kind]
                below.plot([size for size, _ in kind], off, **style)
    for axes in (above, below):
        axes.set_xscale("log")
        axes.grid(color=RULE, linewidth=0.8)
        axes.set_axisbelow(True)
    above.set_yscale("log")
    above.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    above.set_ylabel("milliseconds")
    above.legend(frameon=False)
    below.axhline(0, color=INK, linewidth=1.2)
    below.xaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_in_words(value)))
    below.tick_params(axis="x", colors=MUTED)
    below.set_ylabel("off the line, %")
    below.set_xlabel("bytes in the tensor")
    series = [
        [name, [short(each) for each in lines[name]], _values(points), _values((unseen or {}).get(name, ()))]
        for name, points in fitted.items()
    ]
    keep(figure, "fit", title=title, series=series)
    return figure


def _values(points: Points) -> list[list[float]]:
    return [[int(size), short(took)] for size, took in points]


def _require(name: str, points: Points, line: tuple[float, float] | None) -> None:
    """Refuse a series that has no place on logarithmic axes, or no distance from its line in per cent."""
    if not points:
        raise WorldError(f"cost_fit() got no point for {name!r}: give (bytes, seconds).")
    if line is None:
        raise WorldError(f"cost_fit() got points for {name!r} and no line: give (seconds a call, seconds a byte).")
    fixed, slope = line
    for size, took in points:
        if size <= 0 or took <= 0:
            raise WorldError(f"cost_fit() draws what is above zero, but {name!r} has {took:g} s for {size:g} bytes.")
        if (says := fixed + slope * size) <= 0:  # a residual of a line below zero would have the wrong sign
            raise WorldError(
                f"cost_fit(): the line of {name!r} says {1e3 * says:.3g} ms for {size:g} bytes: "
                "fit relative errors, or leave small sizes out."
            )


def bytes_in_words(size: float) -> str:
    """Return a number of bytes as people say it: ``4 kB``, ``16 MB``; a thousand to the unit."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:g} {unit}"
    return f"{size:g} B"
