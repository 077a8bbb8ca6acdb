"""The node map: which rank stands on which node, as text and HTML. Pure."""

from __future__ import annotations

import html
from collections.abc import Sequence

from ..layout import places
from ..palette import chip

NODE = "border:1px solid currentColor;border-radius:.5em;padding:.5em .8em;min-width:9em;"
ALL = "display:flex;flex-wrap:wrap;gap:.7em;align-items:flex-start;margin:.3em 0;"
NAME = "font:600 .8em/1.6 system-ui,sans-serif;"


def text_map(nodes: Sequence[int], hosts: Sequence[Sequence[str]] = ()) -> str:
    """Return one line per node: its ranks, with their local ranks.

    Args:
        nodes: processes on each node.
        hosts: name, address and link of each node's host, where nodes are hosts of their own.
    """
    lines = [headline(nodes)]
    for node in range(len(nodes)):
        ranks = [place for place in places(nodes) if place.node_rank == node]
        told = "   ".join(hosts[node]) + "   " if hosts else ""
        shown = "   ".join(f"rank {place.rank} (local {place.local_rank})" for place in ranks)
        lines.append(f"node {node}   {told}{shown}")
    return "\n".join(lines)


def html_map(nodes: Sequence[int], hosts: Sequence[Sequence[str]] = ()) -> str:
    """Return a box a node with its ranks in their colours; needs no style sheet.

    Args:
        nodes: processes on each node.
        hosts: name, address and link of each node's host, where nodes are hosts of their own.
    """
    boxes = []
    for node in range(len(nodes)):
        ranks = "".join(
            f"<div>{chip(place.rank, f'rank {place.rank}')} <small>local {place.local_rank}</small></div>"
            for place in places(nodes)
            if place.node_rank == node
        )
        told = "".join(f"<div><small>{html.escape(line)}</small></div>" for line in hosts[node]) if hosts else ""
        boxes.append(
            f'<div class="rl-node" style="{NODE}"><div class="rl-node-name" style="{NAME}">node {node}</div>{told}'
            f'<div class="rl-ranks">{ranks}</div></div>'
        )
    head = f'<p class="rl-head" style="margin:.2em 0;">{headline(nodes)}</p>'
    return f'{head}<div class="rl-nodes" style="{ALL}">{"".join(boxes)}</div>'


def headline(nodes: Sequence[int]) -> str:
    """Say how many ranks on how many nodes."""
    size = sum(nodes)
    ranks = f"{size} rank{'s' if size > 1 else ''}"
    return f"{ranks} on {len(nodes)} node{'s' if len(nodes) > 1 else ''}"
