"""The network that a world's ranks use: this machine's loopback interface, or hosts of their own.

Both say where rank 0 is met and what a rank's environment adds, and both are closed with the world.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from ..errors import NoHosts
from ..lab.absent import AbsentHosts
from ..lab.lab import Lab
from ..lab.namespaces import HOST, HOST_ETC
from ..lab.rates import Link
from ..layout import IMPATIENT, LOOPBACK, Place
from ..live import tell
from ..system.backends import interfaces
from ..system.ports import reserve_port
from .choice import FORK, SPAWN

# On hosts that exist for one world only, ports below those that the kernel hands out by itself (32768 and up).
FIRST_PORT = 20000


class Computers:
    """Computers that ranklab has not made: the ranks' launcher knows how they are met.

    Attributes:
        address: where rank 0 is met.
    """

    address = "127.0.0.1"
    why = "The hosts of these ranks are real computers: ranklab has not made them."

    @property
    def lost(self) -> bool:
        """Whether hosts have gone though nobody has ended them."""
        return False

    @property
    def links(self) -> tuple[Link, ...]:
        """What the cable of each host carries."""
        return ()

    @property
    def captions(self) -> Sequence[tuple[str, str, str]]:
        """Name, address and link of each host."""
        return ()

    @property
    def cut(self) -> Sequence[tuple[int, str]]:
        """Number and name of each host whose cable is cut."""
        return ()

    @property
    def lab(self) -> Lab | AbsentHosts:
        """No hosts, and the reason."""
        return AbsentHosts(self.why)

    def set(self, links: Sequence[Link]) -> None:
        """Leave the network as it is: it has no links that could be set."""

    def close(self) -> None:
        """Give back what was taken. Twice is fine."""


class Network(Computers, ABC):
    """A network that ranklab has made, so that it chooses the port of rank 0."""

    @property
    @abstractmethod
    def port(self) -> int:
        """The TCP port on which rank 0 listens."""

    @abstractmethod
    def renew(self) -> int:
        """Take another port."""

    @abstractmethod
    def environment(self, place: Place) -> dict[str, str]:
        """Return what a rank's environment says about the network."""


class Loopback(Network):
    """Nodes laid out on this machine, which talk over its loopback interface.

    Args:
        why: why the nodes are no hosts, where hosts were asked for.
    """

    def __init__(self, why: str = "") -> None:
        self.why = why or 'The nodes of this world share one computer: start(nodes=[2, 2], link="1gbit") makes hosts.'
        self._port = reserve_port()

    @property
    def port(self) -> int:
        """The TCP port on which rank 0 listens."""
        return self._port.getsockname()[1]

    def renew(self) -> int:
        """Reserve another port."""
        self._port.close()
        self._port = reserve_port()
        return self.port

    def environment(self, place: Place) -> dict[str, str]:
        """Return what a rank's environment says about the network."""
        # A backend otherwise looks up this machine's name, which resolves wrongly on many laptops.
        ours = interfaces(LOOPBACK) | dict([IMPATIENT])
        return {name: os.environ.get(name, value) for name, value in ours.items()}

    def close(self) -> None:
        """Give the port back. Twice is fine."""
        self._port.close()


class Hosts(Network):
    """Nodes that are hosts of their own.

    Args:
        links: what the cable of each host carries.
        home: the world's private folder.

    Raises:
        NoHosts: this machine does not allow it.
    """

    def __init__(self, links: Sequence[Link], home: Path) -> None:
        self._lab = Lab(len(links), home=home)
        self.address = self.lab[0].address
        self._ports = itertools.count(FIRST_PORT)
        self._port = next(self._ports)
        try:
            self.set(links)
        except BaseException:
            self.lab.stop()
            raise

    @property
    def lab(self) -> Lab:
        """The hosts."""
        return self._lab

    def set(self, links: Sequence[Link]) -> None:
        """Set what the cables carry."""
        for host, link in zip(self.lab, links, strict=True):
            host.set_link(Link(link.rate, self.lab.possible(link.delay)))

    @property
    def lost(self) -> bool:
        """Whether the hosts have gone though nobody has ended them."""
        return self.lab.lost

    @property
    def links(self) -> tuple[Link, ...]:
        """What the cables carry now."""
        return tuple(host.link for host in self.lab)

    @property
    def captions(self) -> list[tuple[str, str, str]]:
        """Name, address and link of each host."""
        return [host.caption for host in self.lab]

    @property
    def cut(self) -> list[tuple[int, str]]:
        """Number and name of each host whose cable is cut."""
        return [(number, host.name) for number, host in enumerate(self.lab) if host.is_cut]

    @property
    def port(self) -> int:
        """The TCP port on which rank 0 listens."""
        return self._port

    def renew(self) -> int:
        """Take another port."""
        self._port = next(self._ports)
        return self._port

    def environment(self, place: Place) -> dict[str, str]:
        """Return what a rank's environment says about the network: the way into its host."""
        host = self.lab[place.node_rank]
        return {HOST: str(host.pid), HOST_ETC: str(host.etc), **interfaces(host.interface)}

    def close(self) -> None:
        """End the hosts. Twice is fine."""
        self.lab.stop()


def make_network(links: Sequence[Link], launcher: str, home: Path) -> Network:
    """Make the network of a world; where hosts are asked for and impossible, say so and use loopback.

    Args:
        links: what the cable of each host carries; empty where no hosts are asked for.
        launcher: "fork" or "spawn": only a rank that was forked can move to a host.
        home: the world's private folder.
    """
    if not links:
        return Loopback()
    try:
        if launcher == SPAWN:
            raise NoHosts(f'Only ranks that are forked can move to hosts of their own (launcher="{FORK}", on Linux).')
        return Hosts(links, home)
    except NoHosts as why:
        tell(f"{why} The nodes share this computer, and the link has no rate.")
        return Loopback(str(why))
