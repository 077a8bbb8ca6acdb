"""``%%px``: ipyparallel's magic, with ranks instead of engine ids, an ordered panel and a deadline."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping

from ipyparallel import AsyncResult
from ipyparallel.client.magics import ParallelMagics, exec_args, output_args
from IPython import get_ipython
from IPython.core import magic_arguments

from . import world as worlds
from .cells import cell as cells
from .cells.deadlines import less_what_others_take, on_the_wall
from .cells.panel import Panel
from .cells.presses import Presses
from .classroom import tell_ranks
from .errors import RankError, RankTimeout, WorldError
from .layout import name_ranks, read_ranks
from .live import AFTER, Live, publish
from .outcome import CellOutcome
from .palette import chip
from .system.patience import LONGEST

# Options of ipyparallel that a panel in rank order has no use for; each is refused in one sentence.
STREAM = (
    "%%px shows what the ranks print while they work, and one panel in rank order when they are done: "
    "leave out --stream."
)
GROUPED = "%%px shows one panel in rank order: leave out --group-outputs, -e and -r."
SIGNALS = (
    "Stop ends the cell on the ranks with SIGINT and frees those that wait; --signal-on-interrupt takes nothing else. "
    "world.restart() ends the processes."
)
AUTOPX = "%autopx would hide where a cell runs: begin each cell that is for the ranks with %%px."
NO_RESULT = "No %%px cell has run on these ranks: %pxresult shows the latest one again."
INTERRUPT = ("SIGINT", "2")

timeout_arg = magic_arguments.argument(
    "--timeout", type=float, help="seconds until the cell counts as hung (default: those of the world)"
)
ranks_arg = magic_arguments.argument(
    "--ranks", type=str, help="the ranks to run on, for example 0,2 or 1-3 (default: all)"
)


class RankMagics(ParallelMagics):
    """``%px``, ``%%px``, ``%pxresult``, ``%pxconfig`` and ``%autopx`` on the ranks of the current world."""

    timeout: float | None = None
    ranks = "all"
    block = True
    live_after = AFTER
    _latest: tuple | None = None  # processes, replies and text of the latest cell, and what came of it once it is known

    @property
    def last_result(self) -> AsyncResult | None:
        """What ipyparallel returns of the latest cell: joined when it is asked for, which most cells never are."""
        return AsyncResult.join(*self._latest[1].values()) if self._latest else None

    @magic_arguments.magic_arguments()
    @exec_args
    @output_args
    @ranks_arg
    @timeout_arg
    @magic_arguments.argument(
        "--local", action="store_const", const=True, dest="local", help="run the cell in the notebook's kernel too"
    )
    def cell_px(self, line: str = "", cell: str = ""):
        """Run the cell on the ranks and show what they said, in rank order."""
        args = magic_arguments.parse_argstring(self.cell_px, line)
        chosen = self._read(args)
        result = self._execute(cell, args.save_name, **chosen)
        if args.local:
            self.shell.run_cell(cell).raise_error()
        return result

    @magic_arguments.magic_arguments()
    @exec_args
    @ranks_arg
    @timeout_arg
    def pxconfig(self, line: str = ""):
        """Set what ``%%px`` and ``%px`` do where they are told nothing else: ``%pxconfig --ranks 0 --timeout 10``."""
        chosen = self._read(magic_arguments.parse_argstring(self.pxconfig, line))
        read_ranks(chosen["ranks"], worlds.current().size)
        for name, value in chosen.items():
            setattr(self, name, value)

    @magic_arguments.magic_arguments()
    @output_args
    def result(self, line: str = ""):
        """Show the panel of the latest cell, also of one that was sent with ``--noblock``: this waits for it."""
        args = magic_arguments.parse_argstring(self.result, line)
        refuse_output_options(args)
        world = worlds.current()
        if self._latest is None or self._latest[0] is not world.processes:
            raise WorldError(NO_RESULT)
        _, replies, cell, outcome = self._latest
        if args.save_name:
            self.shell.user_ns[args.save_name] = self.last_result
        elif outcome is not None:
            self._tell(outcome, Live(self.live_after))
        else:
            self._await(world, lambda: replies, cell, self.timeout, self.live_after)

    def autopx(self, line: str = ""):
        """Say what to do instead: ``%autopx`` would send cells to the ranks that do not say so."""
        raise WorldError(AUTOPX)

    def parallel_execute(self, cell, **_):
        """Run code on the ranks; called by ``%px`` of ipyparallel."""
        return self._execute(cell)

    def _read(self, args: argparse.Namespace) -> dict:
        """Return what a cell, or ``%pxconfig``, was told, and the defaults for the rest."""
        if args.timeout is not None and not 0 < args.timeout <= LONGEST:
            raise WorldError(f"--timeout takes seconds, for example --timeout 10, not {args.timeout:g}.")
        if args.stream:
            raise WorldError(STREAM)
        refuse_output_options(args)
        if args.signal_on_interrupt not in (None, *INTERRUPT):
            raise WorldError(SIGNALS)
        after = args.progress_after_seconds
        return {
            "timeout": self.timeout if args.timeout is None else args.timeout,
            "ranks": args.ranks or args.targets or self.ranks,
            "block": self.block if args.block is None else args.block,
            "verbose": self.verbose if args.set_verbose is None else args.set_verbose,
            "live_after": self.live_after if after is None else after if after >= 0 else math.inf,
        }

    def _execute(self, cell: str, save_name: str | None = None, **told):
        chosen = {name: getattr(self, name) for name in ("timeout", "ranks", "block", "verbose", "live_after")} | told
        world = worlds.current()
        ranks = read_ranks(chosen["ranks"], world.size)
        timeout = chosen["timeout"] or world.timeout
        world.heal()

        def send() -> dict:
            replies = {rank: world.view(rank).execute(cell, silent=False, block=False) for rank in ranks}
            self._latest = (world.processes, replies, cell, None)
            if save_name:
                self.shell.user_ns[save_name] = self.last_result
            return replies

        if chosen["verbose"]:
            print(f"On {name_ranks(ranks)}{f', deadline {timeout:g} s' if chosen['block'] else ''}.")
        if not chosen["block"]:
            send()
            return self.last_result
        self._await(world, send, cell, chosen["timeout"], chosen["live_after"])
        if len(ranks) == world.size:
            world.cells.append(cell.strip("\n"))
        return None

    def _await(
        self, world: worlds.World, send: Callable[[], Mapping], cell: str, timeout: float | None, live_after: float
    ) -> None:
        """Wait for a cell, show its panel, and raise what went wrong."""
        live = Live(live_after)
        deadline, seconds = (on_the_wall, timeout) if timeout else (less_what_others_take, world.timeout)
        with Presses() as presses:  # until the panel stands: a press meanwhile must not lose it
            outcome = cells.run(world.processes, send, seconds, live, presses, cell, deadline)
            if self._latest:
                self._latest = (*self._latest[:3], outcome)
            tell_ranks(world.size, outcome.headline if outcome.timed_out else "")
            self._tell(outcome, live)

    def _tell(self, outcome: CellOutcome, live: Live) -> None:
        _show(outcome, live)
        if outcome.headline:
            raise (RankTimeout if outcome.timed_out else RankError)(outcome.headline)


def refuse_output_options(args: argparse.Namespace) -> None:
    """Refuse ways to group outputs other than the panel's.

    Args:
        args: of a magic, with or without ``groupby``.
    """
    if getattr(args, "groupby", "type") != "type":
        raise WorldError(GROUPED)


def _show(outcome: CellOutcome, live: Live) -> None:
    """Show the panel in place of the live display, then what the ranks displayed."""
    panel = Panel(outcome)
    live.finish(panel.bundle() if panel else None, panel.metadata())
    for entry in outcome.ranks:
        for content in entry.displays:
            publish({"text/plain": f"rank {entry.rank}", "text/html": chip(entry.rank, f"rank {entry.rank}")})
            publish(content["data"], content.get("metadata"))


def register() -> None:
    """Make the magics known to the running IPython; nothing happens outside of one."""
    shell = get_ipython()
    if shell is not None:
        shell.register_magics(RankMagics(shell, None))
