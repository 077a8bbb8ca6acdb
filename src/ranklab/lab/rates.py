"""The rate and the delay of a link: what a reader writes, what ``tc`` takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import WorldError

UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}
SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
UNLIMITED = "unlimited"
LOWEST, HIGHEST = 10e3, 100e9  # bits per second
# A bucket of tokens may leave at once: 2 ms of the rate, and at least ten Ethernet frames. Larger, and small messages
# would see no link at all; smaller, and the timer of the kernel could not keep up with 1 Gbit/s.
BURST_SECONDS, BURST_BYTES = 2e-3, 15_000
PLAIN = "pfifo limit 1000"
QUEUE = "50ms"  # a packet that would wait longer is dropped, and TCP slows down


@dataclass(frozen=True)
class Link:
    """What one host's cable carries, each way.

    Attributes:
        rate: bits per second; None for as fast as the machine copies.
        delay: seconds that a packet from this host is under way; 0 for no more than the machine needs.
    """

    rate: float | None = None
    delay: float = 0.0

    def __str__(self) -> str:
        """Say it as network people do: ``1 Gbit/s``, ``100 Mbit/s, 2 ms``."""
        rate = (
            "unlimited" if self.rate is None else _scaled(self.rate, ("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3))
        )
        return rate + (", " + _scaled(self.delay, ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if self.delay else "")

    def queues(self, interface: str, delayed: bool) -> list[str]:
        """Return the ``tc`` commands that put this link's queues on an interface, in place of what is there.

        Args:
            interface: its name.
            delayed: whether what leaves here is delayed; one end of a cable is enough.
        """
        root = f"dev {interface} root"
        delay = f"netem delay {self.delay * 1e6:.0f}us limit 100000" if self.delay and delayed else ""
        if self.rate is None:
            return [f"qdisc replace {root} {delay or PLAIN}"]
        burst = max(self.rate / 8 * BURST_SECONDS, BURST_BYTES)
        shaped = [
            f"qdisc replace {root} {PLAIN}",  # tc would not change what has something below it
            f"qdisc replace {root} handle 1: tbf rate {self.rate:.0f}bit burst {burst:.0f} latency {QUEUE}",
        ]
        return [*shaped, f"qdisc add dev {interface} parent 1:1 handle 10: {delay}"] if delay else shaped


def read_rate(text: object) -> float | None:
    """Read a rate: ``"1gbit"``, ``"100mbit"``, ``"500 kbit/s"``, or ``"unlimited"``.

    Returns:
        Bits per second, or None for unlimited.

    Raises:
        WorldError: not a rate.
    """
    if text == UNLIMITED:
        return None
    found = (
        re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg])bit(?:/s)?", text.strip().lower()) if isinstance(text, str) else None
    )
    if not found:
        raise WorldError(f'A link has a rate such as "1gbit", "100mbit" or "500kbit", or "unlimited", not {text!r}.')
    rate = float(found[1]) * UNITS[found[2]]
    if not LOWEST <= rate <= HIGHEST:
        raise WorldError(f'A link can have rates from "10kbit" to "100gbit", not {text!r}.')
    return rate


def read_delay(text: object) -> float:
    """Read a delay: ``"2ms"``, ``"500us"``, ``"0ms"`` for none.

    Returns:
        Seconds.

    Raises:
        WorldError: not a delay.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s)", text.strip().lower()) if isinstance(text, str) else None
    if not found or (delay := float(found[1]) * SECONDS[found[2]]) > 10:
        raise WorldError(f'A link has a delay such as "2ms" or "500us", at most "10s", not {text!r}.')
    return delay


def read_links(link: object, delay: object, nodes: Sequence[int]) -> tuple[Link, ...]:
    """Return what the cable of each node carries.

    Args:
        link: the rate that the reader gave; None where the nodes share one computer.
        delay: the delay that the reader gave.
        nodes: processes on each node; empty where the reader gave no nodes.

    Raises:
        WorldError: not a rate, not a delay, or no nodes to join.
    """
    seconds = read_delay(delay)
    if link is None:
        if seconds:
            raise WorldError(f'A delay is a property of a link: start(nodes=[2, 2], link="1gbit", delay={delay!r}).')
        return ()
    rate = read_rate(link)
    if not nodes:
        raise WorldError(f"A link joins nodes on this machine, so name them: start(nodes=[2, 2], link={link!r}).")
    return tuple(Link(rate, seconds) for _ in nodes)


def _scaled(value: float, *units: tuple[str, float]) -> str:
    name, unit = next((pair for pair in units if value >= pair[1]), units[-1])
    return f"{value / unit:g} {name}"
