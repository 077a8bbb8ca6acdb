"""Who waited for whom: when each rank came to a call, when it left it, and when its time was over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from ..palette import ERROR_COLOR, INK, MUTED, PAPER, rank_color
from .canvas import lanes, write_title
from .recording import keep, ms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LANE = 0.6
LETTER = 0.017  # part of the axis that a letter of a label takes
AFTER = 0.4  # seconds that are drawn after the first error


def waiting(ranks: Sequence[Mapping[str, Any]], title: str = "") -> Figure:
    """Draw what each rank did until its collectives were given up: filled its own code, hatched the time in a call.

    Args:
        ranks: for each rank, in rank order, ``began``; its ``calls`` in order, each ``(name, came, left)``, where
            ``left`` is None if the rank did not come back; and ``error``, when it got one, or None. All in seconds on
            one clock. The n-th call of a name on one rank belongs to the n-th call of that name on the others.
        title: one sentence above the lanes.

    Returns:
        A figure with time in seconds, which ends shortly after the first error; where there is none, with the last
        moment, or shortly after it if a rank did not come back. On the site a reader goes through the seconds and
        sees who waits for whom.

    Raises:
        WorldError: there is no rank, no call, or something that ends before it begins.

    Used in the chapter *hangs*, as ``ranklab.figures.waiting``.
    """
    if not any(rank["calls"] for rank in ranks):
        raise WorldError("waiting() needs at least one rank with a call: (name, came, left).")
    zero = min(rank["began"] for rank in ranks)
    errors = [rank["error"] for rank in ranks if rank["error"] is not None]
    moments = [moment for rank in ranks for call in rank["calls"] for moment in call[1:] if moment is not None]
    if errors:
        end = min(errors) + AFTER
    else:
        stays = any(left is None for rank in ranks for _, _, left in rank["calls"])
        # A call that nobody came back from has no end: it gets some width, which is seen after long waits, too.
        end = max(moments) + (max(AFTER, (max(moments) - zero) / 10) if stays else 0)
    figure, axes = lanes(len(ranks))
    for number, rank in enumerate(ranks):
        _lane(axes, number, rank, zero, end)
    axes.set_xlabel("time in s: filled is a rank's own code, hatched is time in a call")
    axes.set_xlim(0, end - zero)
    write_title(axes, title)
    keep(figure, "waiting", title=title, end=ms(end, zero, 0), ranks=[_values(rank, zero) for rank in ranks])
    return figure


def _values(rank: Mapping[str, Any], zero: float) -> dict[str, Any]:
    """Return a rank as the page holds it: milliseconds."""
    calls = [
        [name, ms(came, zero, 0), None if left is None else ms(left, zero, 0)] for name, came, left in rank["calls"]
    ]
    return {"calls": calls, "error": None if rank["error"] is None else ms(rank["error"], zero, 0)}


def _lane(axes: Any, number: int, rank: Mapping[str, Any], zero: float, end: float) -> None:
    color, free = rank_color(number), rank["began"]
    last = end if rank["error"] is None else min(rank["error"], end)

    def bar(start: float, stop: float, **look: Any) -> None:
        axes.barh(number, stop - start, left=start - zero, height=LANE, linewidth=1.2, **look)

    for name, came, left in rank["calls"]:
        if came >= last:
            break
        until = min(last if left is None else left, end)
        if came < free or until < came:
            raise WorldError(f"On rank {number} something ends before it begins.")
        bar(free, came, facecolor=color, edgecolor=PAPER)
        bar(came, until, facecolor=PAPER, edgecolor=MUTED, hatch="////")
        bar(came, until, facecolor="none", edgecolor=color)
        if until - came > LETTER * len(name) * (end - zero):
            look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 11, "color": INK}
            box = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
            axes.text((came + until) / 2 - zero, number, name, bbox=box, **look)
        free = until
    if free < last:
        bar(free, last, facecolor=color, edgecolor=PAPER)
    if rank["error"] is not None and rank["error"] <= end:
        axes.plot(
            [last - zero] * 2, [number - 0.42, number + 0.42], color=ERROR_COLOR, linewidth=4, solid_capstyle="butt"
        )
