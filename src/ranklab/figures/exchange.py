"""What an operation moved: the numbers of every rank before and after it, each in the colour of where it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from ..palette import INK, MUTED, PAPER, label_color, rank_color
from .canvas import LARGE, WIDTH, canvas, write_title
from .recording import chosen, keep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 18  # numbers side by side that a phone can still show
SMALLEST = 6  # points of a number that can still be read
DIGIT = 0.68  # widths of a letter's size that a digit takes, with air
LABEL, ARROW, GAP = 1.7, 1.1, 0.6  # widths of "rank 0", of the arrow and between two results, in cells


def exchange(
    before: Sequence[Any],
    after: Sequence[Any] | Mapping[str, Sequence[Any]],
    title: str = "",
    drawn: Sequence[str] | None = None,
) -> Figure:
    """Draw the numbers that ranks held before and after an operation, side by side, a row per rank.

    A number has the colour of the rank that alone held it before. One that nobody held before, or several did, was
    computed or cannot be told: it stays without a colour.

    Args:
        before: for each rank, in rank order, its small tensor, list or number; None or [] where it had none.
        after: the same, after the operation; or several by name, after one operation each.
        title: one sentence above them.
        drawn: the names of the operations that the picture shows, or one name; all by default. On the site one
            chooses among all.

    Returns:
        A figure; a rank with no number has a dash. All numbers are as small as the longest needs.

    Raises:
        WorldError: there is no rank, the lists differ in length, or a row or a number is too long to be read.

    Used in the chapter *collectives*, as ``ranklab.figures.exchange``.
    """
    named = {"before": before, **(after if isinstance(after, Mapping) else {"after": after})}
    if len(before) == 0 or any(len(grid) != len(before) for grid in named.values()):
        told = ", ".join(f"{len(grid)} ranks {name}" for name, grid in named.items())
        raise WorldError(f"exchange() got {told}; give one entry a rank.")
    recorded = {name: [_numbers(row) for row in grid] for name, grid in named.items()}
    shown = chosen("exchange", [name for name in named if name != "before"], drawn)
    grids = {name: recorded[name] for name in ["before", *shown]}
    widths = [max(len(name) * 0.25, 1, *(len(row) for row in grid)) for name, grid in grids.items()]
    if sum(widths) > MOST:
        raise WorldError(f"exchange() got rows of {sum(widths):g} numbers together; it draws at most {MOST}.")
    starts = [LABEL]
    for width, gap in zip(widths, [ARROW, *[GAP] * len(widths)], strict=False):
        starts.append(starts[-1] + width + gap)
    whole = starts[-1] - GAP
    cell = min(0.56, (WIDTH - 0.3) / whole)
    size = min(LARGE, cell * 72 * 0.42)
    longest = max((_text(number) for grid in grids.values() for row in grid for number in row), key=len, default="")
    digits = min(size, 0.92 * cell * 72 / (DIGIT * max(len(longest), 1)))
    if digits < SMALLEST:
        raise WorldError(f"exchange() has no room for {longest} in a cell: round the numbers, or draw fewer.")
    figure, axes = canvas(cell * (len(before) + 1) + (0.55 if title else 0.15), colors=32)
    owners = _owners(grids["before"])
    for rank in range(len(before)):
        axes.text(0, rank + 0.5, f"rank {rank}", va="center", color=INK, fontsize=size)
        axes.text(starts[1] - ARROW / 2, rank + 0.5, "→", ha="center", va="center", color=MUTED, fontsize=size)
        for left, grid in zip(starts, grids.values(), strict=False):
            for place, number in enumerate(grid[rank] or ["–"]):
                _cell(axes, left + place, rank, number, owners.get(number), digits)
    for left, name in zip(starts, grids, strict=False):
        axes.text(left, -0.38, name, va="center", color=MUTED, fontsize=size)
    axes.set_xlim(-0.05, max(whole, (WIDTH - 0.3) / cell))
    axes.set_ylim(len(before) + 0.05, -0.75)
    axes.set_aspect("equal", anchor="W")
    write_title(axes, title)
    keep(figure, "exchange", title=title, grids=[[name, grid] for name, grid in recorded.items()])
    return figure


def _cell(axes: Any, x: float, y: float, number: Any, owner: int | None, size: float) -> None:
    from matplotlib.patches import Rectangle

    color = INK if owner is None else label_color(owner)
    if number == "–":
        color = MUTED
    else:
        face, edge = (PAPER, INK) if owner is None else (rank_color(owner), rank_color(owner))
        axes.add_patch(Rectangle((x, y + 0.04), 0.92, 0.92, lw=1.2, fc=face, ec=edge))
    axes.text(x + 0.46, y + 0.5, _text(number), ha="center", va="center", color=color, fontsize=size)


def _numbers(row: Any) -> list:
    """Return what a rank holds as a flat list of numbers: of a tensor, a number, or lists of them."""
    if row is None:
        return []
    row = row.tolist() if hasattr(row, "tolist") else row
    if not isinstance(row, (list, tuple)):
        return [row]
    return [number for part in row for number in _numbers(part)]


def _owners(rows: list[list]) -> dict[Any, int]:
    """Return the rank of each number that one rank alone holds."""
    holders: dict[Any, set[int]] = {}
    for rank, row in enumerate(rows):
        for number in row:
            holders.setdefault(number, set()).add(rank)
    return {number: min(ranks) for number, ranks in holders.items() if len(ranks) == 1}


def _text(number: Any) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)
