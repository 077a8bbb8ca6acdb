"""Figures of what really happened, drawn from data that came from the ranks.

Every function returns a matplotlib figure: the last line of a cell shows it. Matplotlib is imported inside the
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
from .timeline import launches, timeline

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
    "timeline",
]
