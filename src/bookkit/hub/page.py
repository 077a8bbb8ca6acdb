"""The instructor's page: one row a learner, one column an exercise; no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from bookkit.hub.seen import Learner

EVERY = 5  # seconds until the page asks again
STYLE = """
body { font: 1rem/1.4 system-ui, sans-serif; margin: 2rem; color-scheme: light dark }
table { border-collapse: collapse } th, td { padding: .3rem .7rem; text-align: left; border-bottom: 1px solid #8886 }
.hangs { background: #d55e0033; font-weight: 600 } .solved { background: #009e7333 } .quiet { opacity: .65 }
"""


def page(learners: Sequence[Learner], servers: Mapping[str, str], now: float) -> str:
    """Return the page; what a learner has written and UTF-8 cannot say stands there as a question mark.

    Args:
        learners: what they show.
        servers: the state of each learner's server, by name: "runs" or "starts".
        now: seconds since the epoch.
    """
    exercises = sorted({name for learner in learners for name in learner.exercises})
    heads = ["learner", "server", "ranks", "latest cell", "last news", *exercises]
    rows = [_row(learner, servers.get(learner.name, "off"), exercises, now) for learner in learners]
    hangs = sum(bool(learner.hang) for learner in learners)
    counts = (
        f"{len(learners)} learners, {len(servers)} servers, {sum(one.ranks for one in learners)} ranks, {hangs} hang"
    )
    html = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="{EVERY}"><title>The room</title><style>{STYLE}</style></head>
<body><h1>The room</h1><p>{counts}</p>
<table><thead><tr>{"".join(f'<th scope="col">{escape(head)}</th>' for head in heads)}</tr></thead>
<tbody>{"".join(rows)}</tbody></table>
<p class="quiet">Of a learner who has not agreed you see the server alone. An exercise is marked once it was right;
the number counts the tries.</p></body></html>
"""
    return html.encode(errors="replace").decode()


def _row(learner: Learner, server: str, exercises: Sequence[str], now: float) -> str:
    cells = [f'<th scope="row">{escape(learner.name)}</th>', f"<td>{escape(server)}</td>"]
    if not learner.shows:
        return f'<tr class="quiet">{"".join(cells)}<td colspan="{3 + len(exercises)}">shows nothing</td></tr>'
    latest = f'<td class="hangs">hangs: {escape(learner.hang)}</td>' if learner.hang else "<td></td>"
    cells += [f"<td>{learner.ranks or ''}</td>", latest, f"<td>{_ago(now - learner.at) if learner.at else ''}</td>"]
    for name in exercises:
        solved, tries, words = learner.exercises.get(name, (False, 0, ""))
        told = f"{'solved' if solved else 'not yet'}, {tries}" if tries else ""
        cells.append(f'<td class="{"solved" if solved else ""}" title="{escape(words)}">{told}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _ago(seconds: float) -> str:
    return f"{max(0, round(seconds))} s ago" if seconds < 120 else f"{round(seconds / 60)} min ago"
