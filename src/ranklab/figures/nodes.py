"""Which rank stands on which node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import WorldError
from ..palette import INK, MUTED, label_color, rank_color
from .canvas import LARGE, canvas, write_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure

READ = ("RANK", "LOCAL_RANK", "GROUP_RANK")


def node_map(
    environments: Sequence[Mapping[str, str]],
    title: str = "",
    notes: Sequence[str] = (),
    marked: Collection[int] = (),
) -> Figure:
    """Draw nodes as boxes and ranks as tiles, from the environment that each rank has.

    Args:
        environments: for each rank, in rank order, a mapping with ``RANK``, ``LOCAL_RANK`` and ``GROUP_RANK``, as
            text or numbers; what else is in it is not read.
        title: one sentence above the nodes.
        notes: for each rank, in rank order, a word or two for the third line of its tile; none by default.
        marked: ranks whose tile has a thick outline.

    Returns:
        A figure; a tile shows the rank in large type and the local rank below it. Of a part of the ranks, the tiles
        of a node stand side by side.

    Raises:
        WorldError: there is no rank, one of the three is missing or no whole number, or there are notes, but not one
            for each rank.

    Used in the chapter *rank-local-rank-world-size*.
    """
    from matplotlib.patches import FancyBboxPatch

    if not environments:
        raise WorldError("node_map() needs at least one rank: give the environment of each.")
    if notes and len(notes) != len(environments):
        raise WorldError(f"node_map() got {len(environments)} ranks and {len(notes)} notes; give one note a rank.")
    ranks = [_read(environment, number) for number, environment in enumerate(environments)]
    nodes = sorted({rank["GROUP_RANK"] for rank in ranks})
    counts = {node: sum(rank["GROUP_RANK"] == node for rank in ranks) for node in nodes}
    tile = 1.16 if notes else 0.9
    whole = max(len(ranks) + 0.55 * len(nodes) - 0.3, 4.2)
    size = LARGE * min(1.0, 6.2 / whole)
    figure, axes = canvas(2.35 if notes else 2.0)

    def box(x, y, width, height, **look):
        style = "round,pad=0,rounding_size=.08"
        axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, **look))

    left = 0.0
    starts: dict[int, float] = {}
    order = sorted(range(len(ranks)), key=lambda index: (ranks[index]["GROUP_RANK"], ranks[index]["LOCAL_RANK"]))
    for node in nodes:
        # In order, side by side: of a part of the ranks, the local rank would lie outside a box as wide as the part.
        tiles = [index for index in order if ranks[index]["GROUP_RANK"] == node]
        starts |= {index: left + 0.15 + place for place, index in enumerate(tiles)}
        width = counts[node] + 0.2
        box(left, 0, width, tile + 0.55, fc="none", ec=MUTED, lw=1.5)
        axes.text(left + 0.12, tile + 0.33, f"node {node}", va="center", color=INK, fontsize=size)
        left += width + 0.35
    for index, (rank, note) in enumerate(zip(ranks, notes or [""] * len(ranks), strict=True)):
        x = starts[index]
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
    write_title(axes, title)
    return figure


def _read(environment: Mapping[str, str], number: int) -> dict[str, int]:
    """Return the three numbers that say where a rank stands."""
    if missing := [name for name in READ if name not in environment]:
        raise WorldError(f"node_map() misses {' and '.join(missing)} in the environment with index {number}.")
    try:
        return {name: int(environment[name]) for name in READ}
    except (TypeError, ValueError) as error:
        told = ", ".join(f"{name}={environment[name]}" for name in READ)
        raise WorldError(f"node_map() needs whole numbers; the environment with index {number} has {told}.") from error
