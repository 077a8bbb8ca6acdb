"""A lab of hosts: computers of their own in a network of their own, on this machine.

Each host is a set of Linux namespaces (network, host name, mounts, process ids), joined to the others by a cable
into a switch. :mod:`.holder` holds them, ordinary ``ip`` and ``tc`` commands set them up, and nothing of them
can be seen from outside: no name in the file system, no interface on this machine.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from ..errors import NoHosts, RanklabError, WorldError
from ..live import tell
from ..programs import search_path
from ..system.deadman import HOME, OWNER
from ..system.leftovers import make_home
from ..system.pipes import piped
from ..system.refused import no_more
from .host import Host
from .hosttools import PATIENCE, check_tools, hear, refused, run_tool
from .rates import Link
from .subnets import FIRST, MOST, choose_subnet

KNOWN, UNKNOWN, DEBIAN = "known", "unknown", "127.0.1.1"
AS_ROOT = ["unshare", "--net"]
AS_USER = ["unshare", "--user", "--map-root-user", "--net"]
END_PATIENCE = 2.0


class Lab(Sequence):
    """Hosts on this machine: ``lab[0]`` is ``computer1``.

    Args:
        count: how many hosts.
        link: what each cable carries.
        names: what the hosts know of each other: "known" (every name and its address), "unknown" (no name, also not
            their own) or "127.0.1.1" (as Debian installs: a host knows its own name as that address).
        subnet: their network, ``"192.168.7.0/24"``; one that this machine does not use where nothing is said.
        home: a private folder that somebody else removes; the lab makes its own where nothing is said.

    Raises:
        NoHosts: this machine does not allow it; the sentence says how to allow it.
        WorldError: a number, name or network that makes no sense.
        RanklabError: the system refused a file or a process.

    Used in the chapter *two-computers*.
    """

    def __init__(
        self,
        count: int,
        link: Link | None = None,
        names: str = KNOWN,
        subnet: str | None = None,
        home: Path | None = None,
    ) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST:
            raise WorldError(f"A lab has 1 to {MOST} hosts, for example ranklab.hosts(2), not {count!r}.")
        if names not in (KNOWN, UNKNOWN, DEBIAN):
            raise WorldError(f'names is "{KNOWN}", "{UNKNOWN}" or "{DEBIAN}", not {names!r}.')
        check_tools()
        self._hosts: list[Host] = []
        self._started: list[subprocess.Popen] = []
        self._holder: subprocess.Popen | None = None
        self._can_delay: bool | None = None
        self._private: Path | None = None
        try:
            self.subnet = choose_subnet(subnet)
            self._home = home or make_home()
            self._private = None if home else self._home
            self._set_up(count, link or Link(), names)
        except OSError as error:
            self.stop()
            raise RanklabError(no_more(error)) from error
        except BaseException as error:
            self.stop()
            if type(error) is RanklabError:
                raise NoHosts(f"This machine cannot join hosts: {error}") from error
            raise

    def _set_up(self, count: int, link: Link, names: str) -> None:
        addresses = [str(self.subnet[FIRST + number]) for number in range(count)]
        pids = self._hold([f"computer{number + 1}" for number in range(count)])
        for number, (address, pid) in enumerate(zip(addresses, pids, strict=True)):
            self._hosts.append(Host(self, number, address, pid, self._home / f"computer{number + 1}"))
        for host in self:
            self._write_etc(host, names)
        self._join()
        link = Link(link.rate, self.possible(link.delay))
        for host in self:
            self._furnish(host)
            host.set_link(link)

    def _hold(self, names: list[str]) -> list[int]:
        """Start the holder; return a process in each host's namespaces."""
        heard: list[str] = []
        for unshare in (AS_ROOT, AS_USER) if os.geteuid() == 0 else (AS_USER,):
            self.as_user = unshare is AS_USER
            environment = {**os.environ, OWNER: str(os.getpid()), HOME: str(self._home)}
            environment["PATH"] = search_path(environment)
            self._holder = subprocess.Popen(
                [*unshare, sys.executable, "-m", "ranklab.lab.holder", *names],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # a Ctrl-C in the terminal is not for it
            )
            told, said = hear(piped(self._holder.stdout))
            if "pids" in told:
                return told["pids"]
            heard += [*said, *told.get("failed", "").splitlines()]
            self._release()
        raise refused(heard)

    def _write_etc(self, host: Host, names: str) -> None:
        known = {other.name: other.address for other in self} if names != UNKNOWN else {}
        if names == DEBIAN:
            known[host.name] = DEBIAN
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in known.items())]
        texts = {"hosts": "\n".join(lines) + "\n"}
        with contextlib.suppress(FileNotFoundError):
            # No way leads to a name server from here, and a service of this machine would tell its names.
            switch = Path("/etc/nsswitch.conf").read_text()
            texts["nsswitch.conf"] = re.sub(r"^hosts:.*", "hosts: files", switch, flags=re.MULTILINE)
        host.etc.mkdir()
        for name, text in texts.items():
            if Path("/etc", name).exists():  # else there is nothing to put it over
                (host.etc / name).write_text(text)

    def _join(self) -> None:
        """Make the switch and a cable to every host."""
        lines = ["link set dev lo up", "link add switch type bridge", "link set dev switch up"]
        for number, host in enumerate(self, start=1):
            lines.append(f"link add port{number} type veth peer name eth0 netns {host.pid}")
            lines.append(f"link set dev port{number} master switch up")
        self.tool(None, ["ip", "-batch", "-"], lines)

    def _furnish(self, host: Host) -> None:
        """Give a host its address and its own /etc/hosts."""
        address = f"addr add {host.address}/{self.subnet.prefixlen} dev eth0"
        # No IPv6 on the link: gloo would have two addresses to choose from.
        lines = ["link set dev lo up", "link set dev eth0 addrgenmode none", address, "link set dev eth0 up"]
        self.tool(host.pid, ["ip", "-batch", "-"], lines)
        for path in sorted(host.etc.iterdir()):
            self.tool(host.pid, ["mount", "--bind", str(path), f"/etc/{path.name}"])

    def settle(self) -> None:
        """Wait until every host notices that its cable is in, and forgets whom it has not found meanwhile."""
        for host in self:
            deadline = time.monotonic() + PATIENCE
            while not host.is_cut and "LOWER_UP" not in self.tool(host.pid, ["ip", "link", "show", "dev", "eth0"]):
                if time.monotonic() > deadline:
                    raise RanklabError(f"The cable of {host.name} is in, but it does not notice.")
            self.tool(host.pid, ["ip", "neigh", "flush", "dev", "eth0"])

    def rate(self, rate: str) -> None:
        """Set what every cable carries, see :meth:`ranklab.lab.host.Host.rate`; can be done while ranks work."""
        for host in self:
            host.rate(rate)

    def delay(self, delay: str) -> None:
        """Set how long a packet is under way from every host, see :meth:`ranklab.lab.host.Host.delay`."""
        for host in self:
            host.delay(delay)

    def can_delay(self) -> bool:
        """Say whether this kernel can delay packets."""
        if self._can_delay is None:
            probe = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
            try:
                self.tool(None, probe)
            except RanklabError:
                self._can_delay = False
            else:
                self.tool(None, ["tc", "qdisc", "del", "dev", "lo", "root"])
                self._can_delay = True
        return self._can_delay

    def possible(self, delay: float) -> float:
        """Return a delay where this kernel can delay packets; else say that it cannot, and return 0."""
        if delay and not self.can_delay():
            tell("This machine's kernel cannot delay packets (it has no netem): the link has its rate, and no delay.")
            return 0.0
        return delay

    @property
    def lost(self) -> bool:
        """Whether the hosts have gone: stopped, or their holder was killed."""
        return self._holder is None or self._holder.poll() is not None

    def enter(self, pid: int | None, *kinds: str) -> list[str]:
        """Return the command that runs what follows it inside namespaces.

        Args:
            pid: a process in the namespaces of a host; None for the switch.
            kinds: "net", "uts", "mount", "pid".

        Raises:
            RanklabError: the lab has been stopped.
        """
        if self._holder is None or self.lost:
            raise RanklabError("These hosts have gone: their lab or world was stopped, or started again.")
        pid = pid or self._holder.pid
        files = {"mount": "mnt", "pid": "pid_for_children"}
        user = [f"--user=/proc/{pid}/ns/user", "--preserve-credentials"] if self.as_user else []
        return ["nsenter", *user, *(f"--{kind}=/proc/{pid}/ns/{files.get(kind, kind)}" for kind in kinds)]

    def tool(self, pid: int | None, command: Sequence[str], lines: Sequence[str] = ()) -> str:
        """Run one of the tools on a host, or on the switch between them.

        Args:
            pid: a process in the namespaces of a host; None for the switch.
            command: the tool and its arguments.
            lines: what it reads.

        Returns:
            What it printed.

        Raises:
            RanklabError: what the tool said.
        """
        kinds = ("net",) if pid is None else ("net", "mount")
        return run_tool([*self.enter(pid, *kinds), *command], lines)

    def remember(self, process: subprocess.Popen) -> None:
        """Note a process that was started on a host, which ends with the lab."""
        self._started = [other for other in self._started if other.poll() is None] + [process]

    def stop(self) -> None:
        """End the hosts and everything that runs on them. Twice is fine."""
        self._release()
        for process in self._started:  # the kernel has killed them
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_PATIENCE)
        self._started = []
        if self._private:
            shutil.rmtree(self._private, ignore_errors=True)

    def _release(self) -> None:
        holder, self._holder = self._holder, None
        if holder is None:
            return
        try:
            family = psutil.Process(holder.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        with contextlib.suppress(BrokenPipeError):  # it was killed
            piped(holder.stdin).write(b"end")
            piped(holder.stdin).close()
        try:
            holder.wait(END_PATIENCE)
        except subprocess.TimeoutExpired:  # it was stopped
            holder.kill()
            holder.wait()
        piped(holder.stdout).close()
        for process in psutil.wait_procs(family, timeout=END_PATIENCE)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def __len__(self) -> int:
        return len(self._hosts)

    def __getitem__(self, number):
        try:
            return self._hosts[number]
        except IndexError:
            raise IndexError(f"this lab has {len(self)} hosts, lab[0] to lab[{len(self) - 1}]") from None

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))
