"""The values that a figure is drawn from, kept beside its picture: on the site a reader can move them.

They stand in the metadata of the output, which notebooks neither show nor compare, and are small: rounded, on one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def keep(figure: Figure, kind: str, **values: Any) -> None:
    """Keep the values of a figure beside its picture.

    Args:
        figure: made by ``canvas``.
        kind: which moving figure shows them: the name of a file in ``book/_static/figures``.
        values: what JSON can hold, rounded.
    """
    # One line, and no list of lines: a notebook would give each number a line of its own.
    text = json.dumps({"kind": kind, **values}, separators=(",", ":"), ensure_ascii=False)
    figure.recording = {"ranklab": {"recording": text}}  # type: ignore[attr-defined]


def ms(seconds: float, zero: float = 0.0, places: int = 1) -> float:
    """Return a moment in milliseconds since ``zero``, with so many places; without any, a whole number."""
    return round(1e3 * (seconds - zero), places or None)


def short(number: float) -> float:
    """Return a number with four digits that count."""
    return float(f"{number:.4g}")


def chosen(who: str, names: Iterable[str], drawn: Sequence[str] | None) -> list[str]:
    """Return the names of the runs that the picture shows: ``drawn``, which may be one name, or all.

    Raises:
        WorldError: a name that no run has.
    """
    there = list(names)
    drawn = [drawn] if isinstance(drawn, str) else drawn  # one name, and not its letters
    if unknown := [name for name in drawn or () if name not in there]:
        raise WorldError(f"{who}() has no run {unknown[0]!r} to draw; it got {', '.join(map(repr, there))}.")
    return list(drawn) if drawn else there
