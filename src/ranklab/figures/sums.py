"""Ways to the same sum, step by step: which numbers every rank's sum contained after each step, and who sent what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..errors import WorldError
from ..palette import INK, MUTED, RULE, rank_color
from .canvas import canvas, write_title
from .recording import keep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# One call of send, isend or recv: its name, the other rank, the place of its first number in the tensor, its numbers
# before the call, and what this rank's tensor held then.
Call = tuple[str, int, int, Sequence[int], Sequence[int]]
Log = tuple[Sequence[Call], Sequence[int]]
Message = tuple[int, int, int, int]

WIDE, GAP = 5, 1.2  # a state's width is one chunk each and a gap
ROW = 5  # so high is a rank's state, in owners and a gap
MOST = 7  # states side by side
LEFT = -4.5  # where the names of ranks begin, left of the first state


def sums(ways: Mapping[str, Sequence[Log]], title: str = "") -> Figure:
    """Draw what was in the sum of every rank after each step, for several ways to add the ranks' numbers.

    Rank r gives 10**r at every place, so the digits of a number tell whose numbers it contains. A message that waited
    for an earlier one begins a new step.

    Args:
        ways: for each way by name, for each rank in rank order, its calls ``(name, other, place, numbers, held)`` in
            their order, with the name "send", "isend" or "recv", and what its tensor held at the end.
        title: one sentence above.

    Returns:
        A figure with a row of states a way: a column a chunk, a line an owner. On the site one steps through a way.

    Raises:
        WorldError: there is no way, or a rank received what nobody sent.

    Used in the chapter *all-reduce*.
    """
    if not ways or not all(ways.values()):
        raise WorldError("sums() got no way, or one without ranks; give what each rank called.")
    found = {name: _steps(name, logs) for name, logs in ways.items()}
    size = len(next(iter(ways.values())))
    places, rows = _places({name: len(states) for name, (states, _) in found.items()})
    figure, axes = canvas(0.5 + 0.1 * rows * (ROW * size + 3), colors=16)
    figure.set_dpi(56)  # seen only where scripts are off: half the bytes
    for name, (states, _) in found.items():
        row, column = places[name]
        _draw(axes, name, states, row * (ROW * size + 3), column * (WIDE + GAP))
    axes.set_xlim(LEFT, MOST * (WIDE + GAP))
    axes.set_ylim(rows * (ROW * size + 3) - 2, -2.5)
    write_title(axes, title)
    keep(figure, "sums", title=title, ways=[[name, *parts] for name, parts in found.items()])
    return figure


def _steps(name: str, logs: Sequence[Log]) -> tuple[list[list[list[int]]], list[list[Message]]]:
    """Return what all ranks held after each step, and the messages of each: sender, receiver, place and length."""
    sent: dict[tuple[int, int], list[int]] = {}  # the steps of the messages between two ranks, in their order
    taken: dict[tuple[int, int], int] = {}
    when: list[list[int]] = [[] for _ in logs]  # the step of each call of each rank
    messages: list[tuple[int, Message]] = []
    waiting = True
    while waiting:
        waiting = False
        for rank, (calls, _) in enumerate(logs):
            while len(when[rank]) < len(calls):
                call, other, place, numbers, _ = calls[len(when[rank])]
                if call == "recv":
                    count = taken.get((other, rank), 0)
                    if len(sent.get((other, rank), [])) <= count:
                        break
                    taken[other, rank] = count + 1
                    when[rank].append(sent[other, rank][count])
                else:
                    earlier = zip(calls, when[rank], strict=False)
                    step = 1 + max((at for (kind, *_), at in earlier if kind == "recv"), default=0)
                    sent.setdefault((rank, other), []).append(step)
                    messages.append((step, (rank, other, place, len(numbers))))
                    when[rank].append(step)
                waiting = True
    if any(len(at) < len(calls) for at, (calls, _) in zip(when, logs, strict=True)):
        raise WorldError(f"sums() got a rank that received what nobody sent, in {name!r}.")
    last = max((step for step, _ in messages), default=0)
    states = [[_held(log, at, step) for log, at in zip(logs, when, strict=True)] for step in range(last + 1)]
    return states, [[told for at, told in messages if at == step + 1] for step in range(last)]


def _held(log: Log, when: Sequence[int], step: int) -> list[int]:
    """Return what a rank held when ``step`` was over: as its next call began, or at the end."""
    calls, end = log
    return list(next((held for (*_, held), at in zip(calls, when, strict=True) if at > step), end))


def _places(states: Mapping[str, int]) -> tuple[dict[str, tuple[int, int]], int]:
    """Return the row and the first column of each way, several in a row where they fit, and the number of rows."""
    places: dict[str, tuple[int, int]] = {}
    row, column = 0, 0
    for name, count in states.items():
        if column and column + count > MOST:
            row, column = row + 1, 0
        places[name] = row, column
        column += count + 1
    return places, row + 1


def _draw(axes: Axes, name: str, states: list[list[list[int]]], top: float, start: float) -> None:
    from matplotlib.patches import Rectangle

    size = len(states[0])
    head = start - 0.2 if start else LEFT
    axes.text(head, top - 1, name.replace("_", " "), color=INK, fontsize=12, weight="bold", va="center")
    for step, ranks in enumerate(states):
        left = start + step * (WIDE + GAP)
        told = f"step {step}" if step else ""  # there stands the name of the way
        axes.text(left + len(ranks[0]) / 2, top - 1, told, color=MUTED, fontsize=11, va="center", ha="center")
        for rank, numbers in enumerate(ranks):
            above = top + ROW * rank
            axes.add_patch(Rectangle((left - 0.2, above - 0.2), len(numbers) + 0.3, size + 0.3, fc="none", ec=RULE))
            for place, number in enumerate(numbers):
                for owner in range(size):
                    if number // 10**owner % 10:
                        axes.add_patch(Rectangle((left + place, above + owner), 0.9, 0.9, fc=rank_color(owner)))
    if not start:
        for rank in range(size):
            axes.text(LEFT, top + ROW * rank + size / 2, f"rank {rank}", color=INK, fontsize=11, va="center")
