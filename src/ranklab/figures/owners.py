"""Which rank holds which part of a tensor, drawn from the parts that the ranks hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from ..layout import name_ranks
from ..palette import INK, MUTED, PAPER, label_color, rank_color
from .canvas import WIDTH, canvas, write_title
from .parts import Held, covered, read_pictures, read_shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy import ndarray

NUMBER = 13  # points of a rank's number; a phone shows a figure at half its size
SHEET = 0.24  # inches by which a copy stands out behind the one in front of it
GAP, LINE = 0.26, 0.3  # inches between two tensors, and for a line of text
TALLEST = 1.25  # inches of the largest tensor
LEAST = 0.24  # inches of the smallest, so that a vector is seen
LETTER = 0.095  # inches that a letter of a name takes
DIGIT = 0.12  # inches that each further digit of a rank's number takes
SPREAD = 4.0  # the longest side is drawn at most so many times as long as the shortest
CELLS = 24  # a tensor with more of them along a side is drawn without lines between its elements

CHIPS = 20  # ranks in a line that tells their colours

Picture = tuple[str, "Mapping[str, list[ndarray]]"]  # its caption, and the sheets of each tensor


def owners(whole: Mapping[str, Any], held: Held | Mapping[str, Held], title: str = "") -> Figure:
    """Draw tensors and, in each rank's colour and with its number, the part that the rank holds.

    A part that another rank holds too is drawn as a copy behind it; what nobody holds stays empty.

    Args:
        whole: for each tensor its name and the whole of it, as a tensor or a shape, in the order from left to right.
            A vector is drawn as a row; the dimensions of a tensor after the first are laid in a row one after another.
            Areas are to scale while no side is longer than four times another.
        held: for each rank, in rank order, a mapping from the names of the tensors to the part that it holds, as
            ``world.pull`` returns it. A part is ``(offset, tensor)``, where the offset is the place of its first
            element in the whole: one number for the first dimension, or a tuple with one number a dimension (of a
            DTensor, ``compute_local_shape_and_global_offset``). Or it is a list of indices along the first dimension,
            as a sampler gives them. A name that is missing, or None, means nothing. A mapping from captions to such
            sequences draws one picture a caption, two side by side where they have room.
        title: one sentence above it.

    Returns:
        A figure. Tensors that have no room beside each other go on, below, in the next row; where a block is too
        small for its number, the last line tells the colours.

    Raises:
        WorldError: no tensor or no rank, something that is neither a tensor nor a shape, no mapping where one is
            needed, a part without its offset or one that is not inside its tensor or has a name that ``whole`` does
            not have, or more than the paper has room for.

    Used from the chapter *why-distribute* on::

        ranklab.owners({"A": (6, 8)}, [{"A": (0, upper)}, {"A": (3, lower)}])
    """
    pictures = read_pictures(whole, held)
    shapes = {name: read_shape(name, tensor) for name, tensor in whole.items()}
    drawn = [(caption, _sheets(shapes, ranks)) for caption, ranks in pictures.items()]
    words = {name: f"{name}  {'×'.join(map(str, shape))}" for name, shape in shapes.items()}
    sizes, lines = _lay_out(shapes, words, drawn)
    tall = [_height(line, sizes) for line in lines]
    figure, axes = canvas(1)
    unnumbered = False
    for number, line in enumerate(lines):
        top, bottom = -sum(tall[:number]), -sum(tall[: number + 1]) + 1.4 * LINE
        for place, (caption, picture) in enumerate(line):
            left = place * WIDTH / len(line)
            axes.text(left, top - LINE / 2, caption, va="center", weight="bold", fontsize=NUMBER, color=INK)
            for name, sheets in picture.items():
                rows, columns = sizes[name]
                for depth in reversed(range(len(sheets))):
                    corner = (left + depth * SHEET, bottom + depth * SHEET)
                    unnumbered |= not _draw(axes, sheets[depth], *corner, columns, rows, depth)
                axes.text(left, bottom - LINE / 2, words[name], va="center", fontsize=NUMBER - 1, color=MUTED)
                left += max(columns + (len(sheets) - 1) * SHEET, LETTER * len(words[name])) + GAP
    height = sum(tall) + (_name_colors(axes, drawn, -sum(tall)) if unnumbered else 0)
    figure.set_figheight(height + (0.55 if title else 0.1))
    axes.set_xlim(-0.05, WIDTH - 0.35)
    axes.set_ylim(-height, 0)
    axes.set_aspect("equal", anchor="W")
    write_title(axes, title)
    return figure


def _lay_out(
    shapes: Mapping[str, Sequence[int]], words: Mapping[str, str], drawn: Sequence[Picture]
) -> tuple[dict[str, tuple[float, float]], list[list[Picture]]]:
    """Return the height and width of each tensor, and lines of pictures, or of the parts of one that is too wide."""
    behind = {name: max(len(picture[name]) - 1 for _, picture in drawn) * SHEET for name in shapes}
    flat = {name: _flat(shape) for name, shape in shapes.items()}
    taken = 0.4 + len(shapes) * GAP + sum(behind.values())
    for side in (2, 1):
        room = WIDTH / side - 0.4
        fits = side == 1 or (len(drawn) > 1 and WIDTH / 2 - taken > 1.3)  # several copies need the whole width
        if fits and WIDTH / side > taken and all(LETTER * len(caption) < room for caption, _ in drawn):
            sizes = _sizes(flat, WIDTH / side - taken)
            widths = _widths(sizes, behind, words)
            if sum(widths.values()) + GAP * (len(widths) - 1) <= room:
                return sizes, [list(drawn[first : first + side]) for first in range(0, len(drawn), side)]
    sizes = _sizes(flat, room - max(behind.values()), beside=False)
    widths = _widths(sizes, behind, words)
    for name, wide in [*widths.items(), *((caption, LETTER * len(caption)) for caption, _ in drawn)]:
        if wide > room:
            raise WorldError(f"owners() has no room for {name!r}: give it a shorter name, or fewer copies.")
    rows = _rows(widths, room)
    return sizes, [
        [(caption if row is rows[0] else "", {name: picture[name] for name in row})]
        for caption, picture in drawn
        for row in rows
    ]


def _widths(
    sizes: Mapping[str, tuple[float, float]], behind: Mapping[str, float], words: Mapping[str, str]
) -> dict[str, float]:
    """Return how many inches each tensor takes, with its copies and its name."""
    return {name: max(wide + behind[name], LETTER * len(words[name])) for name, (_, wide) in sizes.items()}


def _rows(widths: Mapping[str, float], room: float) -> list[list[str]]:
    """Return the names of the tensors that stand beside each other, row by row."""
    rows: list[list[str]] = [[]]
    taken = 0.0
    for name, wide in widths.items():
        if rows[-1] and taken + wide > room:
            rows.append([])
            taken = 0.0
        rows[-1].append(name)
        taken += wide + GAP
    return rows


def _height(line: Sequence[Picture], sizes: Mapping[str, tuple[float, float]]) -> float:
    """Return how many inches a line needs, with its text."""
    tallest = max(sizes[name][0] for _, picture in line for name in picture)
    copies = max(len(sheets) - 1 for _, picture in line for sheets in picture.values())
    return tallest + copies * SHEET + (2.7 if any(caption for caption, _ in line) else 1.6) * LINE


def _name_colors(axes: Axes, drawn: Sequence[Picture], top: float) -> float:
    """Write the ranks on their colours, from there down; return how many inches that takes."""
    from matplotlib.patches import Rectangle

    ranks = sorted({int(rank) for _, picture in drawn for pile in picture.values() for s in pile for rank in s.flat})
    ranks = [rank for rank in ranks if rank >= 0]
    for number, rank in enumerate(ranks):
        row, column = divmod(number, CHIPS)
        x, y = 0.6 + 0.3 * column, top - 0.3 * (row + 1)
        axes.add_patch(Rectangle((x, y), 0.27, 0.26, fc=rank_color(rank), ec="none"))
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": NUMBER - 2, "weight": "bold"}
        axes.text(x + 0.135, y + 0.12, str(rank), color=label_color(rank), **look)
    axes.text(0, top - 0.18, "rank", va="center", fontsize=NUMBER - 1, color=MUTED)
    return 0.1 + 0.3 * -(-len(ranks) // CHIPS)


def _flat(shape: Sequence[int]) -> tuple[int, int]:
    """Return the rows and columns that a tensor is drawn with."""
    return (1, shape[0]) if len(shape) == 1 else (shape[0], math.prod(shape[1:]))


def _sizes(flat: Mapping[str, tuple[int, int]], room: float, beside: bool = True) -> dict[str, tuple[float, float]]:
    """Return height and width of each tensor in inches, on one scale; sides that differ widely are brought closer.

    All of them have the room beside each other, or each has it for itself.
    """
    sides = [side for pair in flat.values() for side in pair if side > 1]
    spread = max(sides, default=1) / min(sides, default=1)
    power = min(1.0, math.log(SPREAD) / math.log(spread)) if spread > 1 else 1.0
    drawn = {name: (rows**power, columns**power) for name, (rows, columns) in flat.items()}
    widths, heights = [wide for _, wide in drawn.values()], [high for high, _ in drawn.values()]
    inch = min(room / (sum(widths) if beside else max(widths)), TALLEST / max(heights))
    return {name: (max(high * inch, LEAST), max(wide * inch, LEAST)) for name, (high, wide) in drawn.items()}


def _sheets(shapes: Mapping[str, Sequence[int]], held: Held) -> dict[str, list[ndarray]]:
    """Lay the parts of each tensor on sheets: the rank of each element, or −1, no element on one sheet twice."""
    import numpy

    if strangers := {name for parts in held for name in parts} - set(shapes):
        raise WorldError(f"owners() got a part of {sorted(strangers)[0]!r}, which is not among {list(shapes)}.")
    sheets = {name: [numpy.full(shape, -1, numpy.int16)] for name, shape in shapes.items()}
    for rank, parts in enumerate(held):
        for name, part in parts.items():
            mask = covered(part, shapes[name], f"{name!r} of {name_ranks([rank])}")
            for sheet in sheets[name]:
                if (sheet[mask] < 0).all():
                    sheet[mask] = rank
                    break
            else:
                sheets[name].append(numpy.where(mask, numpy.int16(rank), numpy.int16(-1)))
    return {name: [sheet.reshape(_flat(shapes[name])) for sheet in pile] for name, pile in sheets.items()}


def _draw(axes: Axes, sheet: ndarray, left: float, bottom: float, width: float, height: float, depth: int) -> bool:
    """Draw one sheet with its lower left corner there; return whether each block had room for its rank's number."""
    from matplotlib.patches import Rectangle

    rows, columns = sheet.shape
    high, wide = height / rows, width / columns
    numbered = True
    axes.add_patch(Rectangle((left, bottom), width, height, fc=PAPER, ec=MUTED, lw=1, ls=(0, (3, 3)), zorder=2 - depth))
    for top, end, first, last, rank in _blocks(sheet):
        x, y = left + first * wide, bottom + height - end * high
        across, up = (last - first) * wide, (end - top) * high
        edge = min(1.5, 72 * min(across, up) / 4)  # half of it lies inside: a wide edge would hide a narrow block
        line = edge if edge >= 0.5 else 0
        block = Rectangle((x, y), across, up, fc=rank_color(rank), ec=PAPER, lw=line, zorder=2 - depth + 0.1)
        axes.add_patch(block)
        if up < SHEET - 0.08 or across < SHEET - 0.08 + DIGIT * (len(str(rank)) - 1):
            numbered = False
            continue
        middle = (x + across / 2, y + up / 2)
        if depth:  # only an edge of a copy is in sight: its upper right corner
            middle = (x + across - SHEET / 2, y + up - SHEET / 2)
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": NUMBER, "weight": "bold"}
        axes.text(*middle, str(rank), color=label_color(rank), zorder=2 - depth + 0.3, **look)
    lines: dict[str, Any] = {"color": PAPER, "lw": 0.5, "alpha": 0.6, "zorder": 2 - depth + 0.2}
    if max(rows, columns) <= CELLS:
        for row in range(1, rows):
            axes.plot([left, left + width], [bottom + row * high] * 2, **lines)
        for column in range(1, columns):
            axes.plot([left + column * wide] * 2, [bottom, bottom + height], **lines)
    return numbered


def _blocks(sheet: ndarray) -> list[tuple[int, int, int, int, int]]:
    """Return rectangles of one rank: ``(first row, row after the last, first column, column after it, rank)``."""
    import numpy

    found = []
    open_: dict[tuple[int, int, int], int] = {}  # the first row of each run that goes on
    changed = 1 + numpy.flatnonzero((sheet[1:] != sheet[:-1]).any(axis=1))
    for row in (0, *changed.tolist(), len(sheet)):
        runs = _runs(sheet[row]) if row < len(sheet) else []
        for run in [run for run in open_ if run not in runs]:
            found.append((open_.pop(run), row, *run))
        for run in runs:
            open_.setdefault(run, row)
    return sorted(found)


def _runs(row: ndarray) -> list[tuple[int, int, int]]:
    """Return where in a row one rank follows on itself: ``(first column, column after the last, rank)``."""
    import numpy

    cuts = [0, *(1 + numpy.flatnonzero(row[1:] != row[:-1])).tolist(), len(row)]
    return [(first, last, int(row[first])) for first, last in itertools.pairwise(cuts) if row[first] >= 0]
