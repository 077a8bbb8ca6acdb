"""One colour for every rank, the same in panels, figures, diagrams and on the site.

The eight colours lie near the hues of Okabe and Ito. A search over the sRGB cube moved them until
three things held at once:

* each reaches a contrast of 3:1 against the light page and the dark page, so one colour serves both themes;
* white or black text on each reaches 4.5:1;
* they stay apart for a reader with deuteranopia, protanopia or tritanopia, neighbours and the first
  four most.

Colour never carries a rank alone: every chip and every line also shows the number.
`tests/ranklab/test_palette.py` measures all of this.
"""

import html

RANK_COLORS: tuple[str, ...] = (
    "#5490f6",  # 0 blue
    "#ea6c0c",  # 1 orange
    "#007860",  # 2 green
    "#b450a3",  # 3 orchid
    "#789c5a",  # 4 moss
    "#906000",  # 5 brown
    "#7254cc",  # 6 violet
    "#a88a96",  # 7 mauve
)

LIGHT_PAGE = "#ffffff"
"""Background of the light theme."""

DARK_PAGE = "#14171c"
"""Background of the dark theme."""

INK = "#1c2128"
"""Text and axes of a figure."""

MUTED = "#5c6470"
"""Secondary text of a figure: ticks, notes, units."""

RULE = "#c9ced6"
"""Grid lines and borders of a figure."""

PAPER = "#fbfbf9"
"""Opaque background of a figure: near-white on the light page, a quiet card on the dark one."""

ERROR_COLOR = "#dc4c40"
"""A failure as a line or a mark: one colour for both themes, 3:1 against either page."""

ERROR_TEXT: tuple[str, str] = ("#b3261e", "#ff9c93")
"""A failure as text, 4.5:1: on the light page, on the dark page."""


CHIP = (
    "display:inline-block;min-width:1.5em;padding:0 .35em;border-radius:.3em;"
    "font:600 .8em/1.6 system-ui,sans-serif;text-align:center;"
)
"""Style of a rank's label, less its colours."""


def rank_color(rank: int) -> str:
    """Return the colour of a rank as ``#rrggbb``; after eight ranks the colours begin again."""
    return RANK_COLORS[rank % len(RANK_COLORS)]


def label_color(rank: int) -> str:
    """Return the text colour on a rank's colour: ``#ffffff`` where it reaches 4.5:1, else ``#000000``."""
    return "#ffffff" if contrast("#ffffff", rank_color(rank)) >= 4.5 else "#000000"


def chip(rank: int, text: str | None = None) -> str:
    """Return the coloured label of one rank as HTML."""
    style = f"{CHIP}background:{rank_color(rank)};color:{label_color(rank)};"
    return f'<span class="rl-rank" style="{style}">{rank if text is None else html.escape(text)}</span>'


def contrast(one: str, other: str) -> float:
    """Return the WCAG 2 contrast of two ``#rrggbb`` colours, from 1.0 (equal) to 21.0 (black on white)."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    channels = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
