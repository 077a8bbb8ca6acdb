"""Figures of what really happened, drawn from data that came from the ranks.

Every function returns what the last line of a cell shows: a matplotlib figure, or, from ``steps``, an object that
shows itself. ``chart`` and ``charts`` return the axes too, for a chapter to draw on. Matplotlib is imported inside the
functions, because most cells draw nothing.
"""

from .backward import backward
from .canvas import chart, charts
from .costs import cost_fit
from .exchange import exchange
from .nodes import node_map
from .owners import owners
from .relay import relay
from .schedules import schedules
from .steps import steps
from .sums import sums
from .timeline import launches, timeline
from .waiting import waiting

__all__ = [
    "backward",
    "chart",
    "charts",
    "cost_fit",
    "exchange",
    "launches",
    "node_map",
    "owners",
    "relay",
    "schedules",
    "steps",
    "sums",
    "timeline",
    "waiting",
]
