"""Which addresses hosts get: a network that this machine does not use."""

from __future__ import annotations

import ipaddress
import itertools
import json
import os
import socket
import subprocess
from collections.abc import Iterator

import psutil

from ..errors import WorldError
from ..programs import search_path
from .hosttools import PATIENCE

FIRST = 100  # host 1 is ….100, as in the book
MOST = 100

Network = ipaddress.IPv4Network


def choose_subnet(asked: str | None, used: list[Network] | None = None) -> Network:
    """Choose a network of 254 addresses.

    Args:
        asked: such as ``"192.168.7.0/24"``, or None for the first of 192.168.1.0/24, 192.168.2.0/24, … that is free.
        used: the networks in use; those of this machine where nothing is said.

    Raises:
        WorldError: not such a network, or this machine uses it.
    """
    used = used_networks() if used is None else used
    if asked is not None:
        try:
            network = Network(asked)
        except ValueError:
            network = None
        if network is None or network.prefixlen != 24:
            raise WorldError(f'A subnet for hosts is one like "192.168.7.0/24", not {asked!r}.')
        if taken := [other for other in used if other.overlaps(network)]:
            raise WorldError(f"This machine uses {taken[0]} itself: leave subnet out, and a free one is chosen.")
        return network
    for network in _candidates():
        if not any(other.overlaps(network) for other in used):
            return network
    raise WorldError('This machine uses all private networks: give one with subnet="…/24".')


def used_networks() -> list[Network]:
    """Return the networks of this machine's interfaces and routes, less the default route."""
    found = []
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family == socket.AF_INET and address.netmask:
                found.append(Network(f"{address.address}/{address.netmask}", strict=False))
    command = ["ip", "-4", "-json", "route", "show", "table", "all"]
    environment = {**os.environ, "PATH": search_path(dict(os.environ))}
    told = subprocess.run(command, capture_output=True, env=environment, timeout=PATIENCE, check=False).stdout
    for route in json.loads(told or "[]"):
        if route.get("type") not in ("broadcast", "multicast") and route["dst"] != "default":
            found.append(Network(route["dst"], strict=False))
    return [network for network in found if network.prefixlen > 1]  # a VPN routes both halves of everything


def _candidates() -> Iterator[Network]:
    """Yield 192.168.1.0/24 and what follows it, then networks that few people use."""
    for third in itertools.chain(range(1, 255), [0]):
        yield Network(f"192.168.{third}.0/24")
    for second in range(16, 32):
        yield Network(f"172.{second}.77.0/24")
    for second in range(256):
        yield Network(f"10.{second}.77.0/24")
