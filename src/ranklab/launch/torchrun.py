"""torchrun from the notebook: the commands shown, one agent a node, each rank's output in order, always an end."""

from __future__ import annotations

import html
import shutil
import socket
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from ..layout import LOOPBACK
from ..live import Live, tell
from ..system.patience import DEADLINE
from ..system.ports import reserve_port
from .commandline import TORCHRUN, Launch, read_launch
from .devices import LaunchDevices, choose_launch_devices, python_for

if TYPE_CHECKING:
    from .agents import Agent

GRACE = 5.0
POLL = 0.05
COMMAND = "display:block;padding-left:2em;text-indent:-2em;"
WORD = "display:inline-block;max-width:100%;text-indent:0;"
NOTE = "margin:0 0 .6em;overflow-wrap:anywhere;"
COMMANDS = "margin:0 0 .6em;white-space:pre-wrap;overflow-wrap:anywhere;"


def torchrun(
    script: str,
    *arguments: object,
    nproc_per_node: int | Sequence[int] = 1,
    hosts: Sequence[Any] | None = None,
    rdzv: str | None = None,
    launcher: str = TORCHRUN,
    address: str | None = None,
    timeout: float = DEADLINE,
    backend: str | None = None,
    env: Mapping[str, object] | None = None,
    show: bool = True,
    fresh: bool = False,
    **flags: object,
) -> Run:
    """Run a program under torchrun and show what each rank printed, in rank order.

    What you would type on each node is shown first. What really runs has two options more, ``--redirects`` and
    ``--log-dir``, so that each rank writes to files of its own, and an environment in which torchrun says more and
    Python's garbage collector rests while torch is imported (``launch/quick/sitecustomize.py``). On Linux,
    where Python's hashes have a fixed seed (``PYTHONHASHSEED=0``, as the book's make sets it), torch is imported once a
    launch, and each rank is a copy of the process that did it (``launch/quick/copies.py``): torchrun meets, watches and
    ends its ranks as always, but a rank begins at once. What the choice of a backend adds to the
    ranks' environment is said in a sentence below the commands.

    Args:
        script: the program; its path counts from the notebook's folder.
        arguments: what the program gets.
        nproc_per_node: processes on one node, or one number a node: ``[2, 1]``; with several hosts, one number a host.
        hosts: one object a node with ``name`` and ``popen`` (as ``subprocess.Popen``), as a lab of hosts has; left
            out, all nodes are this machine. One that has an ``interface`` too is on this machine: its ranks use the
            GPUs of this machine, and that interface. The network of other hosts is left as it is.
        rdzv: how nodes meet: "static" (node 0 is told) or "c10d"; left out, one node uses ``--standalone`` and several
            use "static".
        launcher: "torchrun", or "torch.distributed.launch" for what stood there before it.
        address: where all nodes look for node 0; left out, the name of its host, or this machine's loopback address.
        timeout: seconds until everything is ended; those in which other programs had the processors do not count.
        backend: "gloo" shows the program no GPU; "nccl" gives each rank one, or lets ranks share where there are fewer,
            for learning and not for speed: ``ranklab.device()`` is the one of a rank. By default ranks see no GPU where
            there are fewer than ranks, and otherwise what torchrun shows them.
        env: variables that the program gets in addition.
        show: whether to show commands and panel; progress is shown in any case.
        fresh: whether each rank is a new Python that imports torch itself, as in a terminal: to time a start, say. A
            program that may set variables before it imports torch always gets that.
        flags: further options of torchrun: ``max_restarts=3`` is ``--max-restarts=3``, ``standalone=True`` is
            ``--standalone``.

    Returns:
        What happened, also where it did not end well: see :class:`Run`.

    Raises:
        WorldError: a request that no launch can fulfil.
        RanklabError: the system runs nothing from the folder of temporary files, and ranks share a GPU.
        KeyboardInterrupt: the reader pressed stop; everything has ended by then.

    Used in the chapter *from-spawn-to-torchrun*.
    """
    launch = read_launch(script, arguments, nproc_per_node, rdzv, hosts, flags, launcher, address, fresh)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
        raise WorldError(f"timeout is a number of seconds greater than 0, not {timeout!r}.")
    devices = choose_launch_devices(launch, hosts, backend, env or {})
    if said := " ".join(filter(None, (devices.told, "" if backend else devices.note))):
        tell(said)
    return _Launching(launch, hosts, timeout, env, devices, devices.note if backend else "").run(show)


class Run:
    """What a launch left behind.

    Attributes:
        outputs: what each rank printed, in rank order.
        errors: what each rank wrote to stderr, in rank order; not shown in full.
        failure: why it did not end well, a :class:`ranklab.launch.autopsy.Failure`; None where it did.
        commands: what to type on each node, one line per node.
        note: what the backend that was asked for has added to the ranks' environment, a sentence; "" where nothing.
        attempts: ``outputs`` of each time that torchrun started the ranks; the last is ``outputs``.
        report: the report of failures that torchrun printed, "" where it printed none. Times, host names, process ids
            and paths are left out.
        logs: what torchrun itself wrote to stderr on each node, as it stands.
        seconds: how long it took.
    """

    def __init__(
        self,
        launch: Launch,
        agents: list[Agent],
        reason: str,
        timeout: float,
        seconds: float,
        strays: Mapping[int, int],
        living: Collection[int],
        note: str = "",
    ) -> None:
        from . import autopsy

        self.commands, self.note, self.seconds = launch.typed(), note, seconds
        self._outcome, self.failure = autopsy.examine(launch, agents, reason, timeout, strays, living)
        self.logs = [agent.log.text() for agent in agents]
        self.report = autopsy.table(agents)
        starts = max(1, *(agent.attempts() for agent in agents))
        self.attempts = [_texts(launch, agents, "stdout.log", attempt) for attempt in range(starts)]
        self.outputs = self.attempts[-1]
        self.errors = _texts(launch, agents, "stderr.log", starts - 1)
        self._standing = False

    def bundle(self) -> tuple[dict[str, str], dict]:
        """Return commands and panel as a MIME bundle, and its metadata."""
        from ..cells.panel import Panel

        panel = Panel(self._outcome)
        text = "\n".join(filter(None, (self.commands, self.note, panel.text()))).rstrip("\n")
        lines = "".join(map(_command_html, self.commands.splitlines()))
        commands = f'<pre class="rl-commands" style="{COMMANDS}">{lines}</pre>'
        note = f'<p class="rl-note" style="{NOTE}">{html.escape(self.note)}</p>' if self.note else ""
        return {"text/plain": text, "text/html": commands + note + panel.html()}, panel.metadata()

    def _ipython_display_(self) -> None:
        """Show it, except in the cell that ran it: there it stands already."""
        if not self._standing:
            from ..live import publish

            publish(*self.bundle())

    def _stand(self) -> None:
        """Note that this cell shows the run; the next one may show it again."""
        module = sys.modules.get("IPython")
        shell = module.get_ipython() if module else None
        if shell is None:
            return
        self._standing = True

        def end_of_cell(*_: object) -> None:
            self._standing = False
            shell.events.unregister("post_run_cell", end_of_cell)

        shell.events.register("post_run_cell", end_of_cell)

    def __repr__(self) -> str:
        ended = f"did not end well: {self.failure}" if self.failure else "ended well"
        return f"{len(self.outputs)} rank{'s' * (len(self.outputs) != 1)} under torchrun {ended}"


class _Launching:
    """A launch while it runs."""

    def __init__(
        self,
        launch: Launch,
        hosts: Sequence[Any] | None,
        timeout: float,
        env: Mapping[str, object] | None,
        devices: LaunchDevices,
        note: str,
    ) -> None:
        from ..system.leftovers import make_home
        from .agents import environment_for

        self.launch, self.hosts, self.timeout, self.devices, self.note = launch, hosts, timeout, devices, note
        self.folder = make_home()
        self.environment = environment_for(launch, env, None if hosts else LOOPBACK, self.folder)
        self.agents: list[Agent] = []
        self.strays: dict[int, int] = {}
        self.living: set[int] = set()
        self.began = time.monotonic()

    def run(self, show: bool) -> Run:
        """Start the agents, wait for them, end them, and read what they left."""
        from .agents import stop
        from .family import living

        live, reason = Live(), "interrupted"
        try:
            try:
                with reserve_port() as holder:
                    self._start(holder)
                    reason = self._wait(live)
            finally:
                try:
                    self.living = living(agent.process.pid for agent in self.agents)
                finally:
                    stop(self.agents)
            return self._finish(live, reason, show)
        except KeyboardInterrupt:
            if self.agents:
                self._finish(live, "interrupted", show)
            raise
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, holder: socket.socket) -> None:
        from .agents import Agent

        port = holder.getsockname()[1]
        common = self.environment
        if self.devices.ranks:
            common = common | python_for(self.devices.ranks, common, self.folder)
        for node, own in enumerate(self.devices.nodes):
            host = self.hosts[node] if self.hosts else None
            self.agents.append(Agent(self.launch, node, port, self.folder, {**common, **own}, host))

    def _wait(self, live: Live) -> str:
        from .clock import LaunchClock
        from .family import strays

        pids = [agent.process.pid for agent in self.agents]
        clock, failed_at = LaunchClock(pids), None
        while running := [agent for agent in self.agents if agent.running()]:
            now = clock()
            if failed_at is None and any([agent.failed for agent in self.agents]):
                failed_at = now
            if failed_at is not None and now > failed_at + GRACE:
                return "trouble"
            if now > self.timeout:
                self.strays = strays(pids)  # while they run
                return "deadline"
            for agent in self.agents:
                agent.look()
            if live.due():
                live.show(self._progress(live.seconds))
            running[0].await_moment(POLL)
        return "finished"

    def _progress(self, seconds: int) -> dict[str, str]:
        from ..cells.panel import Panel
        from ..outcome import CellOutcome, RankOutcome, clean

        ranks = []
        for agent in self.agents:
            for local_rank, rank in enumerate(agent.ranks()):
                said = clean(agent.file(local_rank, "stdout.log").text()).rstrip("\n")
                ranks.append(RankOutcome(rank, "\n".join(said.split("\n")[-3:])))
        waiting = [self.launch.name(agent.node) for agent in self.agents if not agent.arrived()]
        state = f"waiting for torchrun on {' and '.join(waiting)}" if waiting else "running"
        head = f"torchrun: {state}, {seconds} s, deadline {self.timeout:g} s"
        ranks.sort(key=lambda entry: entry.rank)
        return Panel(CellOutcome(ranks, headline=head)).bundle()

    def _finish(self, live: Live, reason: str, show: bool) -> Run:
        seconds = time.monotonic() - self.began
        found = self.strays, self.living
        run = Run(self.launch, self.agents, reason, self.timeout, seconds, *found, self.note)
        if show:
            live.finish(*run.bundle())
            run._stand()
        else:
            live.finish()
        return run


def _command_html(line: str) -> str:
    """Return a command that breaks between its words, not at the dashes in them, and is indented from there on."""
    words = " ".join(f'<span style="{WORD}">{html.escape(word)}</span>' for word in line.split(" "))
    return f'<span style="{COMMAND}">{words}</span>'


def _texts(launch: Launch, agents: list[Agent], name: str, attempt: int) -> list[str]:
    texts = [""] * launch.size
    for agent in agents:
        for local_rank, rank in enumerate(agent.ranks()):
            # Each torchrun counts its own attempts: one that started its ranks less often has its last.
            texts[rank] = agent.file(local_rank, name, min(attempt, max(0, agent.attempts() - 1))).text()
    return texts
