"""``%%px``: ipyparallel's magic, with ranks instead of engine ids, an ordered panel and a deadline."""

from __future__ import annotations

from ipyparallel import AsyncResult
from ipyparallel.client.magics import ParallelMagics, exec_args, output_args
from IPython import get_ipython
from IPython.core import magic_arguments

from . import world as worlds
from .cells import cell as cells
from .cells.panel import Panel
from .errors import RankError, RankTimeout, WorldError
from .layout import read_ranks
from .live import Live, publish
from .palette import chip


class RankMagics(ParallelMagics):
    """``%px``, ``%%px``, ``%pxresult``, ``%pxconfig`` and ``%autopx`` on the ranks of the current world."""

    timeout: float | None = None
    ranks: str | None = None

    @magic_arguments.magic_arguments()
    @exec_args
    @output_args
    @magic_arguments.argument("--ranks", type=str, help="the ranks to run on, for example 0,2 or 1-3 (default: all)")
    @magic_arguments.argument("--timeout", type=float, help="seconds until the cell counts as hung (default: 60)")
    @magic_arguments.argument(
        "--local", action="store_const", const=True, dest="local", help="run the cell in the notebook's kernel too"
    )
    def cell_px(self, line: str = "", cell: str | None = None):
        """Run the cell on the ranks and show what they said, in rank order."""
        args = magic_arguments.parse_argstring(self.cell_px, line)
        if args.timeout is not None and args.timeout <= 0:
            raise WorldError(f"--timeout takes seconds, for example --timeout 10, not {args.timeout:g}.")
        self.timeout, self.ranks = args.timeout, args.ranks or args.targets
        try:
            result = self.parallel_execute(cell, block=args.block, save_name=args.save_name)
        finally:
            self.timeout = self.ranks = None
        if args.local:
            self.shell.run_cell(cell).raise_error()
        return result

    def parallel_execute(self, cell, block=None, save_name=None, **_):
        """Run code on the ranks; called by all magics of ipyparallel."""
        world = worlds.current()
        ranks = read_ranks(self.ranks or "all", world.size)
        world.heal()

        def send() -> dict:
            replies = {rank: world.view(rank).execute(cell, silent=False, block=False) for rank in ranks}
            self.last_result = AsyncResult.join(*replies.values())
            if save_name:
                self.shell.user_ns[save_name] = self.last_result
            return replies

        if block is False:
            send()
            return self.last_result
        live = Live()
        outcome = cells.run(world, send, self.timeout or world.timeout, live, cell)
        panel = Panel(outcome)
        live.finish(panel.bundle() if panel else None, panel.metadata())
        for entry in outcome.ranks:
            for content in entry.displays:
                _display(entry.rank, content)
        if outcome.headline:
            raise (RankTimeout if outcome.timed_out else RankError)(outcome.headline)
        if len(ranks) == world.size:
            world.cells.append(cell.strip("\n"))
        return None


def _display(rank: int, content: dict) -> None:
    """Show what a rank displayed, under its label."""
    publish({"text/plain": f"rank {rank}", "text/html": chip(rank, f"rank {rank}")})
    publish(content["data"], content.get("metadata"))


def register() -> None:
    """Make the magics known to the running IPython; nothing happens outside of one."""
    shell = get_ipython()
    if shell is not None:
        shell.register_magics(RankMagics(shell, None))
