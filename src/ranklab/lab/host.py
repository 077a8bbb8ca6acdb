"""One host of a lab: commands run on it, its cable is slowed, cut and joined again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Protocol

import psutil

from ..errors import RanklabError
from ..programs import PACKAGES, lacking, search_path
from .rates import Link, read_delay, read_rate

TIMEOUT = 60.0
SHOWN_LINES = 20  # of a failed command's output
# nsenter waits outside for the program inside. It must not end before the program does, so it leaves to the program
# what is sent to both.
SIGNALS = "HUP,INT,QUIT,USR1,USR2,TERM"


class HostProcess(subprocess.Popen):
    """A process on a host; a ``subprocess.Popen`` whose signals reach the program and what it has started."""

    def send_signal(self, sig: int) -> None:
        """Send a signal to the process group of the program."""
        if self.poll() is None:
            os.killpg(self.pid, sig)

    def terminate(self) -> None:
        """Send SIGTERM to the process group of the program."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the program and everything that it has started, in other sessions too, as torchrun does with workers."""
        try:
            family = psutil.Process(self.pid).children(recursive=True) if self.poll() is None else []
        except psutil.NoSuchProcess:
            family = []
        self.send_signal(signal.SIGKILL)
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


class Ground(Protocol):
    """What a host needs of the lab that it stands in, see :class:`ranklab.lab.lab.Lab`."""

    def enter(self, pid: int | None, *kinds: str) -> list[str]: ...  # noqa: D102
    def tool(self, pid: int | None, command: Sequence[str], lines: Sequence[str] = ()) -> str: ...  # noqa: D102
    def remember(self, process: subprocess.Popen) -> None: ...  # noqa: D102
    def possible(self, delay: float) -> float: ...  # noqa: D102
    def settle(self) -> None: ...  # noqa: D102


class Host:
    """A computer of its own as far as the network is concerned: a name, an address, one cable to the switch.

    Attributes:
        name: its host name, ``computer1``.
        address: its address on the link, ``192.168.1.100``.
        interface: the name of its end of the cable, by which a program is told to use the link.
        link: what its cable carries.
        is_cut: whether the cable is cut.

    Used in the chapter *two-computers*.
    """

    interface = "eth0"

    def __init__(self, lab: Ground, number: int, address: str, pid: int, etc: Path) -> None:
        self.name, self.address = f"computer{number + 1}", address
        self.link, self.is_cut = Link(), False
        self.pid, self.etc = pid, etc
        self._lab, self._port = lab, f"port{number + 1}"

    @property
    def names(self) -> str:
        """What this host finds at /etc/hosts: text that can be set, also while programs run."""
        return (self.etc / "hosts").read_text()

    @names.setter
    def names(self, text: str) -> None:
        (self.etc / "hosts").write_text(text)  # in place: the host sees this very file

    def popen(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any) -> HostProcess:
        """Start a program on this host; as ``subprocess.Popen``, and in a session and process group of its own.

        It starts in the present folder, sees this machine's files, and ends at the latest with the lab.

        Args:
            argv: program and arguments.
            env: its whole environment; this process's where nothing is said.
            options: of ``subprocess.Popen``: ``stdout=``, ``cwd=``, ``text=`` …

        Returns:
            The process. ``send_signal`` and ``terminate`` reach its process group, ``kill`` everything that it has
            started. A program that does not exist shows as exit status 127.

        Raises:
            RanklabError: the lab has been stopped.
        """
        environment = dict(os.environ if env is None else env)
        environment["PATH"] = search_path(environment)
        folder = os.path.abspath(options.pop("cwd", None) or os.getcwd())
        enter = self._lab.enter(self.pid, "net", "uts", "mount", "pid")
        command = [shutil.which("env") or "env", f"--ignore-signal={SIGNALS}", *enter]
        command += ["env", f"--default-signal={SIGNALS}", "-C", folder, *map(str, argv)]
        options["start_new_session"] = True
        process = HostProcess(command, env=environment, **options)
        self._lab.remember(process)
        return process

    def run(self, command: str | Sequence[str], timeout: float = TIMEOUT, check: bool = True) -> str:
        """Run a command on this host and wait for its end.

        Args:
            command: what you would type there, for example ``"ping -c 3 computer2"``; or a list of arguments.
            timeout: seconds until it is ended.
            check: raise where its exit status is not 0.

        Returns:
            What it printed, errors among it, without the last line's end.

        Raises:
            RanklabError: it failed, or was not finished in time; or the lab has been stopped.
        """
        argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
        typed = command if isinstance(command, str) else " ".join(map(str, command))
        # A file, and no pipe: what the command leaves in the background, as "server &" does, would keep a pipe open.
        with tempfile.TemporaryFile() as said:
            process = self.popen(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                sentence = f"`{typed}` on {self.name} was not finished after {timeout:g} s and was ended."
                raise RanklabError(sentence + _last_lines(_read(said))) from None
            finally:
                process.kill()
                process.wait()
            output = _read(said)
        if check and process.returncode:
            raise RanklabError(self._why_failed(typed, process.returncode) + _last_lines(output))
        return output.rstrip("\n")

    def _why_failed(self, typed: str, status: int) -> str:
        program = typed.split()[0] if typed.split() else ""
        package = PACKAGES.get(program)
        if status == 127 and package and lacking(program):  # any part of a shell's line may not have been found
            return f"{program} is not installed here: sudo apt install {package}."
        ended = f"was ended by signal {-status}" if status < 0 else f"failed with exit status {status}"
        return f"`{typed}` on {self.name} {ended}."

    def rate(self, rate: str) -> None:
        """Set how much this host's cable carries, each way; what runs goes on at the new rate.

        Args:
            rate: bits per second, ``"1gbit"``, ``"100mbit"``, ``"500kbit"``, or ``"unlimited"``.

        Raises:
            WorldError: not a rate.
        """
        self.set_link(replace(self.link, rate=read_rate(rate)))

    def delay(self, delay: str) -> None:
        """Set how long a packet from this host is under way.

        A kernel without netem cannot delay; one sentence says so, and nothing changes.

        Args:
            delay: ``"2ms"``, ``"500us"``, or ``"0ms"``.

        Raises:
            WorldError: not a delay.
        """
        self.set_link(replace(self.link, delay=self._lab.possible(read_delay(delay))))

    def set_link(self, link: Link) -> None:
        """Put both ends of the cable to a rate and a delay."""
        self._lab.tool(self.pid, ["tc", "-batch", "-"], link.queues(self.interface, delayed=True))
        self._lab.tool(None, ["tc", "-batch", "-"], link.queues(self._port, delayed=False))
        self.link = link

    def cut(self) -> None:
        """Pull this host's cable out of the switch. Nobody is told: what is sent is lost until it is restored."""
        self._lab.tool(None, ["ip", "link", "set", "dev", self._port, "down"])
        self.is_cut = True

    def restore(self) -> None:
        """Put the cable back; what waits on TCP goes on when it next repeats what was lost."""
        self._lab.tool(None, ["ip", "link", "set", "dev", self._port, "up"])
        self.is_cut = False
        self._lab.settle()

    @property
    def caption(self) -> tuple[str, str, str]:
        """Name, address, and what its cable carries."""
        return self.name, self.address, "cut" if self.is_cut else str(self.link)

    def __repr__(self) -> str:
        return "   ".join(self.caption)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace").replace("\r\n", "\n")


def _last_lines(output: str) -> str:
    lines = output.rstrip().splitlines()[-SHOWN_LINES:]
    return "".join(f"\n{line}" for line in lines)
