"""Graders of the chapter *two-computers*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Mapping, Sequence

from ..cells.trace import describe
from ..layout import name_ranks
from .grading import on_ranks

WIRES = ((8, (2, 1, 1), 100), (12, (2, 2), 200), (6, (1, 1, 1), 50), (16, (3, 5), 1000), (16, (4,), 100))
OFFICE = {"lo": "127.0.0.1/8", "docker0": "172.17.0.1/16", "wlan0": "192.168.4.7/22", "eth0": "10.1.2.3/24"}
OTHERS = {"10.1.2.9": "eth0", "192.168.6.80": "wlan0", "172.17.3.2": "docker0", "127.0.1.1": "lo", "10.1.3.9": None}


def wire_seconds(answer: Callable[[float, Sequence[int], float], float]) -> None:
    """Grade the prediction how long cables need for a ring all_reduce, against a count of the messages of one.

    Args:
        answer: ``wire_seconds(megabytes, nodes, mbit)`` returns seconds, where node i runs ``nodes[i]`` ranks, a
            megabyte is a million bytes and every node's cable carries ``mbit`` million bits a second each way.

    Exercise of the chapter *two-computers*.
    """
    for megabytes, nodes, mbit in WIRES:
        expected = _carried(megabytes, nodes) * 8 / mbit
        where = f"{megabytes} MB on nodes {list(nodes)} at {mbit} Mbit/s"
        try:
            given = answer(megabytes, list(nodes), mbit)
        except Exception as error:
            print(f"Not yet. {where}: your answer raised {describe(error)}")
            return
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            print(f"Not yet. {where}: your answer is {given!r}, it should be a number.")
            return
        if not abs(given - expected) <= 1e-6 + 0.01 * expected:  # nan is wrong too
            why = _why(given, expected, megabytes, nodes, mbit)
            print(f"Not yet. {where}: {why}")
            return
    print(f"Correct: {len(WIRES)} rings were counted message by message, and the cables need what you said.")


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
        size * expected: "only one rank of a computer sends over its cable.",
        2 * expected: "a cable carries both directions at once.",
    }
    for slip, sentence in slips.items():
        if abs(given - slip) < 0.01 * slip:
            return f"{told}: {sentence}"
    return f"{told}."


def interface_for(answer: Callable[[str, Mapping[str, str]], str]) -> None:
    """Grade the choice of a network interface: on every rank towards rank 0, then on a computer with four of them.

    Args:
        answer: ``interface_for(address, interfaces)`` returns the name of the interface in whose network the address
            is; ``interfaces`` maps names to addresses with prefix lengths, ``{"eth0": "10.1.2.3/24"}``. Where there is
            none it raises an error.

    Exercise of the chapter *two-computers*.
    """
    for address, expected in OTHERS.items():
        given, raised = _try(answer, address, OFFICE)
        if expected is None and not raised:
            print(f"Not yet. {address} is in no network of {OFFICE}: raise an error instead of {given!r}.")
            return
        if expected is not None and given != expected:
            told = f"raised {raised}" if raised else f"is {given!r}"
            print(f"Not yet. {address} is in the network of {expected}, {OFFICE[expected]}; your answer {told}.")
            return
    live = on_ranks(_live, answer)
    if live is None:
        return
    for rank, (given, expected) in enumerate(live):
        if given != expected:
            print(f"Not yet. On {name_ranks([rank])} the way to rank 0 is {expected}, your answer is {given!r}.")
            return
    print("Correct: on every rank it is the interface towards rank 0, and on a computer with four the right one.")


def _try(answer: Callable, address: str, interfaces: Mapping[str, str]) -> tuple[object, str]:
    try:
        return answer(address, dict(interfaces)), ""
    except Exception as error:
        return None, describe(error)


def _live(answer: Callable) -> tuple[object, str]:
    """Return the answer on this rank for the way to rank 0, and the right one."""
    import psutil

    found = {}
    for name, entries in psutil.net_if_addrs().items():
        for entry in entries:
            if entry.family == socket.AF_INET and entry.netmask:
                length = ipaddress.IPv4Network(f"0.0.0.0/{entry.netmask}").prefixlen
                found.setdefault(name, f"{entry.address}/{length}")
    goal = socket.gethostbyname(os.environ["MASTER_ADDR"])
    networks = {name: ipaddress.ip_interface(told).network for name, told in found.items()}
    right = next(name for name, network in networks.items() if ipaddress.ip_address(goal) in network)
    return answer(goal, found), right
