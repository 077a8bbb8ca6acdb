"""Graders of the chapter *two-computers*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...layout import name_ranks
from ..grading import Raised, asked, number, on_ranks, safely
from ..verdict import Verdict, correct, grader, not_yet

WIRES = ((8, (4, 1, 1), 100), (12, (2, 2), 200), (6, (1, 1, 1), 50), (16, (3, 5), 1000), (16, (4,), 100))
OFFICE = {"lo": "127.0.0.1/8", "docker0": "172.17.0.1/16", "wlan0": "192.168.4.7/22", "eth0": "10.1.2.3/24"}
OTHERS = {
    "10.1.2.9": "eth0",
    "192.168.6.80": "wlan0",
    "172.17.3.2": "docker0",
    "127.0.1.1": "lo",
    "10.1.3.9": None,
    "192.168.9.80": None,  # a prefix of 22 bits ends within a number
}


@grader
def wire_seconds(answer: Callable[[float, Sequence[int], float], float]) -> Verdict:
    """Grade the prediction how long cables need for a ring all_reduce, against a count of the messages of one.

    Args:
        answer: ``wire_seconds(megabytes, nodes, mbit)`` returns seconds, where node i runs ``nodes[i]`` ranks, a
            megabyte is a million bytes and every node's cable carries ``mbit`` million bits a second each way.

    Exercise of the chapter *two-computers*.
    """
    for megabytes, nodes, mbit in WIRES:
        expected = _carried(megabytes, nodes) * 8 / mbit
        where = f"{megabytes} MB on nodes {list(nodes)} at {mbit} Mbit/s"
        given = number(answer, where, megabytes, list(nodes), mbit)
        if not abs(given - expected) <= 1e-6 + 0.01 * expected:  # nan is wrong too
            why = _why(given, expected, megabytes, nodes, mbit)
            return not_yet(f"{where}: {why}")
    return correct(f"{len(WIRES)} rings were counted message by message, and the cables need what you said.")


def _carried(megabytes: float, nodes: Sequence[int]) -> float:
    """Return the megabytes that the busiest cable carries one way, counted message by message."""
    host = [node for node, count in enumerate(nodes) for _ in range(count)]
    size, sent = len(host), [0.0] * len(nodes)
    for _ in range(2 * (size - 1)):  # reduce-scatter, then all-gather: in each step every rank passes one part on
        for rank in range(size):
            if host[rank] != host[(rank + 1) % size]:
                sent[host[rank]] += megabytes / size
    return max(sent)


def _why(given: float, expected: float, megabytes: float, nodes: Sequence[int], mbit: float) -> str:
    if not expected:
        return f"your answer is {given:.4g}: ranks of one computer use no cable."
    size, once = sum(nodes), megabytes * 8 / mbit
    told = f"your answer is {given / expected:.3g} times what the busiest cable needs"
    slips = {
        expected / 8: "a byte has 8 bits.",
        once / 8: "a byte has 8 bits.",
        once: "in a ring every rank passes on 2 (n − 1) / n of the data, not all of it once.",
        2 * (len(nodes) - 1) / len(nodes) * once: f"n counts ranks, here {size}, not computers.",
        max(nodes) * expected: "only one rank of a computer sends over its cable.",
        size * expected: "only one rank of a computer sends over its cable.",
        2 * expected: "a cable carries both directions at once.",
    }
    for slip, sentence in slips.items():
        if abs(given - slip) < 0.01 * slip:
            return f"{told}: {sentence}"
    return f"{told}."


@grader
def interface_for(answer: Callable[[str, Mapping[str, str]], str]) -> Verdict:
    """Grade the choice of a network interface: on a computer with four of them, then on every rank.

    Args:
        answer: ``interface_for(address, interfaces)`` returns the name of the interface in whose network the address
            is; ``interfaces`` maps names to addresses with prefix lengths, ``{"eth0": "10.1.2.3/24"}``. Where there is
            none it raises an error. On the ranks the address is that of rank 0.

    Exercise of the chapter *two-computers*.
    """
    for address, expected in OTHERS.items():
        given, problem = asked(safely, answer, address, dict(OFFICE))
        if problem:
            return not_yet(f"{address} in {OFFICE}: {problem}")
        told = f"raised {given.words}" if isinstance(given, Raised) else f"is {given!r}"
        if expected is None and not _refused(given):
            return not_yet(f"{address} is in no network of {OFFICE}: raise an error that says so; your answer {told}.")
        if expected is not None and given != expected:
            return not_yet(f"{address} is in the network of {expected}, {OFFICE[expected]}; your answer {told}.")
    live = on_ranks(_live, answer)
    for rank, (given, right) in enumerate(live):
        if right and given not in right:
            told = f"raised {given.words}" if isinstance(given, Raised) else f"is {given!r}"
            return not_yet(f"On {name_ranks([rank])} the way to rank 0 is {' or '.join(right)}, your answer {told}.")
    if far := [rank for rank, (_, right) in enumerate(live) if not right]:
        return correct(
            "on a computer with four interfaces it is the right one. "
            f"Nothing was compared on {name_ranks(far)}: no network of the interfaces there has rank 0 in it."
        )
    return correct("on every rank it is the interface towards rank 0, and on a computer with four the right one.")


def _refused(given: Any) -> bool:
    """Say whether an answer raised an error on purpose; a name that nobody has defined is a slip."""
    return isinstance(given, Raised) and not given.words.startswith(("NameError", "UnboundLocalError"))


def _live(answer: Callable) -> tuple[Any, list[str]]:
    """Return the answer on this rank for the way to rank 0, and the right ones; none where a router is between."""
    import psutil

    entries = [
        (name, f"{entry.address}/{entry.netmask}")
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family == socket.AF_INET and entry.netmask
    ]
    goal = socket.gethostbyname(os.environ["MASTER_ADDR"])
    interfaces, right = _ways(entries, goal)
    return safely(answer, goal, interfaces) if right else None, right


def _ways(entries: Sequence[tuple[str, str]], goal: str) -> tuple[dict[str, str], list[str]]:
    """Return one address for each interface, and the names of those in whose network the goal is.

    Args:
        entries: interfaces and their addresses with masks; an interface may have several, and two may be in one
            network.
        goal: where the way leads to. Of several addresses the one in its network counts, or else the first.
    """
    interfaces: dict[str, str] = {}
    right = []
    for name, text in entries:
        own = ipaddress.ip_interface(text)
        if ipaddress.ip_address(goal) in own.network and name not in right:
            right.append(name)
            interfaces[name] = str(own)
        interfaces.setdefault(name, str(own))
    return interfaces, right
