"""The panel under a ``%%px`` cell: every rank's output in rank order, equal outputs joined.

Pure: turns an outcome into text and HTML. The same outcome gives the same bytes.
"""

from __future__ import annotations

import html
import re

from ..layout import name_ranks
from ..outcome import CellOutcome, RankOutcome
from ..palette import CHIP, ERROR_COLOR, chip

# A grid lines up the outputs of all ranks, whatever the number of chips before them.
PANEL = "display:grid;grid-template-columns:fit-content(36%) minmax(0,1fr);gap:.3em .9em;align-items:baseline;"
# Each row is a grid of its own: a notebook that is not trusted loses display:contents, and its columns would shift.
ROW = "grid-column:1/-1;display:grid;grid-template-columns:{who}em minmax(0,1fr);gap:.9em;align-items:baseline;"
CHIP_WIDTH, WIDEST = 2, 12  # in em; more chips than fit go to the next line
WHO = "display:flex;flex-wrap:wrap;gap:.2em;"
PRE = "margin:0;padding:0;border:0;background:none;color:inherit;white-space:pre-wrap;overflow-wrap:anywhere;"
HEAD = f"grid-column:1/-1;margin:0;padding-left:.6em;border-left:4px solid {ERROR_COLOR};font-weight:600;"
ADVICE = "grid-column:1/-1;margin:0;"
FOLDED = "grid-column:1/-1;font-size:.9em;"
MANY = 8
ORDER = ("died", "raised", "lost", "freed", "done")
OWN_NAME = "the same, with its own rank in it"


class Panel:
    """What a cell shows in the notebook.

    Args:
        outcome: what the ranks left behind.
    """

    def __init__(self, outcome: CellOutcome) -> None:
        self.outcome = outcome
        self.rows = [*_error_rows(outcome), *_text_rows(outcome)]

    def __bool__(self) -> bool:
        # Torch's log makes no panel of its own: what a cell shows is the same on every backend.
        return bool(self.rows or self.outcome.headline or self.outcome.warning)

    def text(self) -> str:
        """Return the panel as plain text: a label column, then what the ranks said."""
        head = self.outcome.headline or self.outcome.warning
        lines = [head] if head else []
        width = max((len(label) for _, label, _, _ in self.rows), default=0)
        for _, label, kind, text in self.rows:
            mark = " ! " if kind == "stderr" else "   "
            for number, line in enumerate(text.split("\n")):
                lines.append(f"{label if number == 0 else '':<{width}}{mark}{line}".rstrip())
        return "\n".join([*lines, *self._advice()])

    def html(self) -> str:
        """Return the panel as HTML that needs no style sheet."""
        parts = []
        if head := self.outcome.headline or self.outcome.warning:
            parts.append(f'<p class="rl-head" style="{HEAD}">{html.escape(head)}</p>')
        row = ROW.format(who=_width([ranks for ranks, *_ in self.rows]))
        for ranks, label, kind, text in self.rows:
            classes = "rl-row" if kind == "out" else f"rl-row rl-{kind}"
            parts.append(
                f'<div class="{classes}" style="{row}">'
                f'<span class="rl-who" role="group" aria-label="{label}" style="{WHO}">{chips(ranks)}</span>'
                f'<pre class="rl-out" style="{PRE}">{html.escape(text)}</pre></div>'
            )
        for line in self._advice():
            parts.append(f'<p class="rl-advice" style="{ADVICE}">{_marked(line)}</p>')
        parts.append(self._folded())
        return f'<div class="rl-panel" style="{PANEL}">{"".join(parts)}</div>'

    def _advice(self) -> list[str]:
        """Return cause and fix, and in what state the ranks are."""
        outcome = self.outcome
        told = [f"Likely cause: {outcome.cause}"] if outcome.cause else []
        told += [f"Fix: {outcome.fix}"] if outcome.fix else []
        return [*told, outcome.advice] if outcome.advice else told

    def _folded(self) -> str:
        """Return what opens on a click; plain text leaves it out."""
        return _details("What each rank was doing", self.outcome.details) + _details(
            "What torch wrote", self.outcome.torchs_log
        )

    def bundle(self) -> dict[str, str]:
        """Return the panel as a MIME bundle."""
        return {"text/plain": self.text(), "text/html": self.html()}

    def metadata(self) -> dict[str, dict]:
        """Return display metadata; it says where a rank wrote to stderr, which no chapter may store."""
        return {"ranklab": {"stderr": True}} if any(kind == "stderr" for _, _, kind, _ in self.rows) else {}


def chips(ranks: list[int]) -> str:
    """Return the labels of several ranks: a chip each, or one for a large group."""
    if len(ranks) > MANY:
        return f'<span class="rl-rank" style="{CHIP}border:1px solid currentColor;">{name_ranks(ranks)}</span>'
    return "".join(chip(rank) for rank in ranks)


def _width(shown: list[list[int]]) -> int:
    """Return how many em the labels of the widest row take."""
    most = max((MANY if len(ranks) > MANY else len(ranks) for ranks in shown), default=0)
    return min(WIDEST, CHIP_WIDTH * most)


def _marked(sentence: str) -> str:
    """Return a sentence as HTML, what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(sentence))


def _details(summary: str, told: list[tuple[list[int], str]]) -> str:
    if not told:
        return ""
    rows = "".join(
        f'<span style="{WHO}">{chips(ranks)}</span><pre style="{PRE}">{html.escape(text)}</pre>' for ranks, text in told
    )
    return (
        f'<details class="rl-details" style="{FOLDED}"><summary>{summary}</summary>'
        f'<div style="{PANEL}">{rows}</div></details>'
    )


Row = tuple[list[int], str, str, str]


def _join(entries: list[tuple[int, str]], kind: str) -> list[Row]:
    """Join the ranks that say the same, in the order of the first rank of each group."""
    groups: dict[str, list[int]] = {}
    for rank, text in entries:
        groups.setdefault(text, []).append(rank)
    return [(ranks, name_ranks(ranks), kind, text) for text, ranks in groups.items()]


def _error_rows(outcome: CellOutcome) -> list[Row]:
    """Tell the cause before its consequences: ranks that died or raised, then those that waited for them."""
    by_cause = sorted(outcome.ranks, key=lambda entry: (ORDER.index(entry.state), entry.rank))
    first: dict[str, str] = {}
    entries = []
    for entry in by_cause:
        trouble = _trouble(entry)
        # Torch writes the rank into some errors of many lines: told once, not once a rank.
        nameless = re.sub(rf"\brank {entry.rank}\b", "rank", trouble)
        told = first.setdefault(nameless, trouble)
        entries.append((entry.rank, trouble if told == trouble else OWN_NAME))
    return _join([entry for entry in entries if entry[1]], "err")


def _trouble(entry: RankOutcome) -> str:
    return "\n".join([*entry.traceback, *([entry.note] if entry.note else [])])


def _text_rows(outcome: CellOutcome) -> list[Row]:
    printed = [(entry.rank, entry.text) for entry in outcome.ranks if entry.text]
    complained = [(entry.rank, entry.stderr.rstrip("\n")) for entry in outcome.ranks if entry.stderr.strip()]
    return [*_join(printed, "out"), *_join(complained, "stderr")]
