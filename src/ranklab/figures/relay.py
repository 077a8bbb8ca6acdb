"""What ranks know while a number goes from neighbour to neighbour: a lane a rank, a column a step, arrows between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from ..palette import INK, MUTED, RULE, label_color, rank_color
from .canvas import grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHIP = 0.66  # width of the box around what a rank knows, in steps


def relay(panels: Mapping[str, Sequence[Sequence[Any]]], title: str = "") -> Figure:
    """Draw what every rank knew after each step, when ranks pass something to their right neighbours.

    Args:
        panels: for each pattern by name, for each rank in rank order, what it knew after step 0, 1, …; None where
            it did not take part in a step. An arrow joins what a rank knew and what its left neighbour knew before.
        title: one sentence above.

    Returns:
        A figure with a panel a pattern.

    Raises:
        WorldError: there is no pattern, or a pattern has no ranks or no steps.

    Used in the chapter *point-to-point*, as ``ranklab.figures.relay``.
    """
    if not panels or not all(any(map(len, ranks)) for ranks in panels.values()):
        raise WorldError("relay() got no pattern, or one without ranks or steps; give what each rank knew by step.")
    size = max(map(len, panels.values()))
    figure, (row,) = grid(1, len(panels), 1.3 + 0.6 * size, sharey=True)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=14, color=INK)
    for axes, (name, ranks) in zip(row, panels.items(), strict=True):
        _pattern(axes, ranks)
        axes.set_title(name, fontsize=12, color=INK)
        axes.set_xlabel("step")
        axes.set_ylim(size - 0.5, -0.5)
    row[0].set_yticks(range(size), [f"rank {rank}" for rank in range(size)])
    return figure


def _pattern(axes: Axes, ranks: Sequence[Sequence[Any]]) -> None:
    from matplotlib.patches import Rectangle

    steps = max(map(len, ranks))
    axes.set_xlim(-0.5, steps - 0.5)
    axes.set_xticks(range(steps))
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", length=0)
    axes.spines["left"].set_visible(False)
    known = {(step, rank): what for rank, row in enumerate(ranks) for step, what in enumerate(row) if what is not None}
    for (step, rank), what in known.items():
        before = (step - 1, (rank - 1) % len(ranks))
        if before in known:
            # From edge to edge: arrows of one step cross, and must not run over a number.
            head, tail = (step - CHIP / 2, rank), (before[0] + CHIP / 2, before[1])
            arrow = {"arrowstyle": "->", "color": MUTED, "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", head, tail, arrowprops=arrow)
        corner = (step - CHIP / 2, rank - CHIP / 4)
        axes.add_patch(Rectangle(corner, CHIP, CHIP / 2, facecolor=rank_color(rank), zorder=2))
        axes.text(step, rank, what, color=label_color(rank), ha="center", va="center", fontsize=13)
