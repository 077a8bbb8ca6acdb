"""A world of ranks: asked, restarted and stopped from the notebook; and which one is the notebook's."""

from __future__ import annotations

import contextlib
import html
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .cells import cell as cells
from .cells.deadlines import while_ranks_could
from .cells.nodemap import headline, html_map, text_map
from .cells.presses import Presses
from .cells.recovery import regroup
from .classroom import tell_ranks
from .engines.choice import FORK
from .engines.devices import to_type
from .engines.processes import Processes
from .errors import StartLost, WorldError
from .lab.rates import Link
from .layout import name_ranks, shell_commands
from .live import Live
from .rank.errands import answer, read_variable, unpack
from .sending import answers, pickled
from .system.patience import DEADLINE

if TYPE_CHECKING:
    import ipyparallel as ipp

    from .lab.absent import AbsentHosts
    from .lab.lab import Lab

ATTEMPTS = 3

_current: World | None = None
_failed = ""  # what the last start said, where no world came of it


def current() -> World:
    """Return the running world of this notebook.

    Raises:
        WorldError: nothing was started, or it was stopped.
    """
    if _current is None:
        raise WorldError(_failed or "No ranks are running. Start them first: world = ranklab.start(4).")
    return _current._require()


def latest() -> World | None:
    """Return the world that was started last in this notebook, running or not; None where nothing was started."""
    return _current


def make_current(world: World) -> None:
    """Point ``%%px`` and the graders at a world."""
    global _current, _failed
    _current, _failed = world, ""


def note_failed(error: Exception | None) -> None:
    """Let the cells below a start that failed say why there are no ranks; None where one did not fail."""
    global _failed
    _failed = f"No ranks are running. The last start said: {str(error).partition(chr(10))[0]}" if error else ""


class World:
    """Ranks that answer one notebook.

    Args:
        nodes: processes on each node.
        timeout: seconds after which a cell counts as hung.
        launcher: "fork", "spawn", or None for what is right on this machine.
        engines: "slurm", "ssh" or "mpi", with what goes to :class:`ranklab.engines.elsewhere.Elsewhere`.
        elsewhere: see there.
        links: what the cable of each node carries, where the nodes are hosts of their own.
        backend: what the ranks shall talk over, None for what is right where they run.

    Attributes:
        nodes: processes on each node, a tuple.
        size: number of ranks (world size).
        timeout: seconds after which a cell counts as hung; ``%%px --timeout`` overrides it for one cell.
        start_seconds: how long the ranks took to start, the last time they did.
    """

    def __init__(
        self,
        nodes: Sequence[int],
        timeout: float = DEADLINE,
        launcher: str | None = None,
        engines: str | None = None,
        elsewhere: Mapping[str, Any] | None = None,
        links: Sequence[Link] = (),
        backend: str | None = None,
    ) -> None:
        self.nodes = tuple(nodes)
        self.size = sum(self.nodes)
        self.timeout = timeout
        self.cells: list[str] = []
        self._launcher, self._engines, self._elsewhere = launcher, engines, dict(elsewhere or {})
        self.links, self._asked = tuple(links), backend
        self._start()

    def _start(self) -> None:
        began = time.monotonic()
        self.processes = self._start_elsewhere(self._engines) if self._engines else self._start_here()
        self.start_seconds = time.monotonic() - began
        self.running = True
        note_failed(None)
        tell_ranks(self.size)

    def _start_here(self) -> Processes:
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(StartLost):
                return Processes(self.nodes, self._launcher, self.links, self._asked)
        return Processes(self.nodes, self._launcher, self.links, self._asked)

    def _start_elsewhere(self, engines: str) -> Processes:
        from .engines.elsewhere import Elsewhere

        processes = Elsewhere(self.size, engines, **self._elsewhere, backend=self._asked)
        self.nodes, self.size = processes.nodes, processes.size
        return processes

    @property
    def backend(self) -> str:
        """The backend of these ranks: "nccl" where each has a GPU of its own or was asked to share one, else "gloo"."""
        return self.processes.backend

    @property
    def launcher(self) -> str:
        """How ranks start here: "fork" from one process that has imported torch, or "spawn", one by one."""
        return self.processes.launcher

    @property
    def hosts(self) -> Lab | AbsentHosts:
        """The hosts of the nodes, a sequence: ``world.hosts[1].cut()``, ``world.hosts.rate("100mbit")``.

        Where the nodes are no hosts of their own it is empty, so ``if world.hosts:`` asks; using it then raises a
        ``WorldError`` that says why. Used in the chapters *two-computers*, *cost-of-talking* and *buckets*.
        """
        return self._require().processes.network.lab

    def pull(self, name: str) -> list[Any]:
        """Return the value of a variable from every rank, in rank order.

        Tensors come on the CPU, wherever they are on the ranks and in whatever they stand: the notebook's process
        never uses a GPU.

        Args:
            name: a variable that every rank has.

        Raises:
            WorldError: a rank does not have it, is busy or has died, or it cannot be sent, or it is of a class that the
                notebook does not know.
        """
        reply = self._everyone().apply_async(read_variable, name)
        told = answers(reply, self.timeout, self.processes, f"{name!r} cannot be sent from")
        missing = [rank for rank, (found, _) in enumerate(told) if not found]
        if missing:
            raise WorldError(f"No variable {name!r} on {name_ranks(missing)}: set it in a %%px cell first.")
        return [unpack(value) for _, value in told]

    def push(self, **variables: Any) -> None:
        """Set variables on every rank; each rank gets its own copy of the values.

        Raises:
            WorldError: a rank is busy or has died, or a value cannot be sent.
        """
        ready = pickled(variables)
        names = ", ".join(map(repr, variables))
        answers(self._everyone().push(ready, block=False), self.timeout, self.processes, f"{names} cannot be set on")

    def _call(self, function: Callable, *arguments: Any, timeout: float | None = None) -> tuple[list[Any], str]:
        """Call a function on every rank under a deadline of seconds that they can use; the graders use it.

        Args:
            function: called with the arguments on each rank.
            arguments: sent to every rank.
            timeout: seconds until the call counts as hung, counted while the ranks could work: a busy machine must not
                turn a right answer down. The world's deadline where nothing is said.

        Returns:
            The results in rank order and "", or an empty list and a sentence on what went wrong first.
        """
        self._require()
        self.heal()
        replies: dict = {}

        def send() -> dict:
            for rank in range(self.size):
                replies[rank] = self.view(rank).apply_async(answer, function, *arguments)
            return replies

        with Presses() as presses:
            outcome = cells.run(
                self.processes, send, timeout or self.timeout, Live(), presses, deadline=while_ranks_could
            )
        if outcome.headline:
            return [], outcome.headline
        try:
            return [unpack(reply.get()) for reply in replies.values()], ""
        except WorldError as error:
            return [], str(error)

    def commands(self, program: str = "program.py") -> str:
        """Return the shell commands that start the same ranks by hand, one per rank.

        Args:
            program: what each rank runs.

        Returns:
            Lines of ``NAME=value … python program``; ``$PORT`` stands for any free port, the same for all. Ranks that
            share a GPU have the variables which let them, for NCCL.

        Used in the chapter *your-first-ranks*.
        """
        added = to_type(self.processes.devices)
        return shell_commands(self.nodes, self.processes.network.address, program, added)

    def program(self) -> str:
        """Return the ``%%px`` cells so far, joined: a program that torchrun runs unchanged.

        Cells that failed, and cells sent to some ranks only, are left out.

        Used in the chapter *your-first-ranks*.
        """
        return "\n\n".join(self.cells) + "\n"

    def restart(self) -> None:
        """End all ranks and start new ones in the same places. Variables on the ranks are lost."""
        self.links = self.processes.network.links or self.links  # the rates that were set last
        self.processes.stop()
        self.running = False
        self.cells = []
        self._start()

    def stop(self) -> None:
        """End all ranks and everything that was started for them. Twice is fine."""
        self.running = False
        self.processes.stop()
        tell_ranks(0)

    def view(self, ranks: int | Sequence[int]) -> ipp.DirectView:
        """Return ipyparallel's view of one rank, or of several in the given order."""
        chosen = ranks if isinstance(ranks, int) else list(ranks)
        return self._require().processes.client.direct_view(chosen)

    def heal(self) -> None:
        """Start a new process in the place of each rank that has died; all where they cannot be reached any more."""
        if self.processes.lost():
            self.restart()
        alive = self.processes.alive()
        dead = [rank for rank in range(self.size) if rank not in alive]
        if dead:
            regroup(self.processes)
            try:
                self.processes.replace(dead)
            except BaseException:  # a press of stop, too: what nobody has greeted must not be taken for a rank
                for rank in dead:
                    self.processes.signal(rank, signal.SIGKILL)
                raise

    def _everyone(self) -> ipp.DirectView:
        self._require().heal()
        return self.view(range(self.size))

    def _require(self) -> World:
        if not self.running:
            raise WorldError(_failed or "The ranks were stopped. Start them again: world = ranklab.start(4).")
        return self

    def __enter__(self) -> World:
        return self._require()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        if not self.running:
            return f"stopped: {headline(self.nodes)}"
        told = "" if self.launcher == FORK else f"\n{self.processes.how}"  # the usual way needs no words
        return text_map(self.nodes, self.processes.network.captions) + told

    def _repr_html_(self) -> str | None:
        if not self.running:
            return None
        told = "" if self.launcher == FORK else f"<p>{html.escape(self.processes.how)}</p>"
        return html_map(self.nodes, self.processes.network.captions) + told
