"""The process that is a rank: an ipyparallel engine, plus what a rank needs.

Adds to the stock engine: the dead man's switch, the watchdog, and tracebacks cut to the reader's own cells.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable

from ipyparallel.engine.app import IPEngine
from traitlets import Type

from ..lab.namespaces import HOST, enter_network
from ..system.deadman import HOME, OWNER, watch_owner
from ..system.foreign import read_rank
from ..system.gpus import ENGINES
from ..system.home import bookmark_path, watchdog_path
from . import drain
from .bookmark import Bookmark
from .interrupt import guard, signal_main_thread
from .streams import NativeOutput, RankStream
from .trace import CELL_MARK, cut_traceback, printable
from .watchdog import Watchdog


class RankEngine(IPEngine):
    """An ipyparallel engine whose errors end in the reader's cell, not in IPython's."""

    name = "ipengine"
    out_stream_factory = Type(RankStream, config=True)

    async def complete_registration(self, *args, **kwargs) -> None:
        """Register, then prepare the shell that ipyparallel has made on the way."""
        await super().complete_registration(*args, **kwargs)
        prepare_shell(self.kernel.shell)
        guard(self.kernel)
        watch(self.kernel.shell, os.environ[HOME], int(os.environ["RANK"]), self.log)
        if HOST in os.environ:
            # The notebook's connections stand and stay on this machine's loopback, in threads that do not move along.
            enter_network(int(os.environ[HOST]))
        if not self.enable_nanny:
            self.kernel.control_handlers["signal_request"] = self._signal_request

    def _signal_request(self, stream, ident, parent) -> None:
        """Signal this process for ``client.send_signal``; ipyparallel leaves that to the nanny we do without.

        Called in the control thread, so it works while a cell runs.
        """
        number = parent["content"]["sig"]
        number = getattr(signal, number) if isinstance(number, str) else number
        signal_main_thread(number)
        self.session.send(stream, "signal_reply", content={"status": "ok"}, ident=ident, parent=parent)


def watch(shell, home: str, rank: int, log: logging.Logger) -> None:
    """Let the driver see what this rank does, also when it is stuck or has died.

    Args:
        shell: the IPython shell of the engine.
        home: the world's private folder; missing where another launcher has started this rank on another computer.
        rank: this rank.
        log: of the engine, whose messages are not the reader's.
    """
    here = os.path.isdir(home)
    shell.watchdog = Watchdog(watchdog_path(home, rank) if here else None)
    shell.watchdog.watch(shell)
    ends = [stream.end_cell for stream in (sys.stdout, sys.stderr) if isinstance(stream, RankStream)]
    lines_have_run: Callable[[], None] = nothing
    if here:
        bookmark = Bookmark(bookmark_path(home, rank), shell.watchdog.has_called)
        bookmark.follow(shell)
        lines_have_run = bookmark.clear
        native = NativeOutput(home, rank)
        for handler in log.handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(native.log)
        shell.events.register("pre_run_cell", native.begin_cell)
        ends.insert(0, native.end_cell)
    for end in ends:
        shell.events.register("post_run_cell", end)
    drain.follow(shell, lines_have_run)


def nothing() -> None:
    """Do nothing: what a rank on another computer does where a rank here leaves a trace for the notebook."""


def skip_debugger() -> None:
    """Have ipykernel find no debugpy: 150 modules that every engine loads for a debugger which none can reach."""
    if "debugpy" not in sys.modules and "ipykernel.debugger" not in sys.modules:
        sys.modules["debugpy"] = None  # type: ignore[assignment]  # an import of it fails, as where it is not installed
        importlib.import_module("ipykernel.debugger")
        del sys.modules["debugpy"]


def prepare_shell(shell) -> None:
    """Make the shell of a rank report errors as the panel shows them, cut to the reader's cells.

    Args:
        shell: the IPython shell of the engine.
    """

    # IPython warns about how to leave IPython where a cell calls sys.exit; our panel tells what happened.
    warnings.filterwarnings("ignore", "To exit: use", UserWarning)

    def show(exc_tuple=None, *_, **__) -> None:
        error_type, error, _ = shell._get_exc_info(exc_tuple)
        # The lines already end in the message; the error itself might not survive being printed.
        lines = cut_traceback(error)
        shell._showtraceback(error_type, lines[-1], lines)
        forget_frames(error)

    shell.showtraceback = show
    run = shell.run_code

    async def run_code(code, result=None, **options):
        raised = await run(code, result, **options)
        if result is not None:  # IPython's history and ipykernel's reply call str() on it
            result.error_in_exec = printable(result.error_in_exec)
        return raised

    shell.run_code = run_code
    shell.autoawait = False  # else ipykernel, which here has no thread for it, never answers such a cell
    # IPython would keep whatever a cell prints, for its history: RankStream's limit stands behind that.
    shell._tee = lambda channel: contextlib.nullcontext()
    # ipykernel's exit() goes on with the cell and ends the process afterwards; a program's ends the program.
    shell.user_ns["exit"] = shell.user_ns["quit"] = sys.exit
    shell.showsyntaxerror = lambda *_, **__: show()
    shell.events.register("post_run_cell", forget_file)


def forget_frames(error: BaseException | None) -> None:
    """Let go of what the functions held in which an error was raised, and of what had led to it.

    IPython keeps the latest error, and with it a store of a meeting that failed; the next would find that meeting's
    addresses in it.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def forget_file(result) -> None:
    """Let a syntax error say nothing of a cell's temporary file: ipykernel replies with the error's ``str()``.

    Args:
        result: of the cell. IPython has filled in a file where the error had none.
    """
    for error in (result.error_before_exec, result.error_in_exec):
        if isinstance(error, SyntaxError) and (CELL_MARK in (error.filename or "") or not error.lineno):
            error.filename = error.lineno = None


def forget_other_jobs() -> None:
    """Drop variables of a job inside which this notebook may run; they would tell the ranks about other ranks."""
    for name in list(os.environ):
        if name in ("NODE_RANK", "WORLD_RANK") or name.startswith("TORCHELASTIC_"):
            del os.environ[name]


def take_number(argv: list[str]) -> None:
    """Become the rank that Slurm, mpiexec or ssh has numbered, and ask the controller for that engine id.

    Args:
        argv: the engine's arguments; ``--mpi``, which needs mpi4py, is taken out.
    """
    rank = read_rank(os.environ, os.environ.get(ENGINES, ""))
    if rank is None:
        sys.exit("This launcher gave the engine no rank: none of its variables is set.")
    os.environ["RANK"] = str(rank)
    argv[:] = [argument for argument in argv if argument != "--mpi"] + [f"--IPEngine.id={rank}"]


skip_debugger()

if __name__ == "__main__":
    forget_other_jobs()
    if OWNER in os.environ:
        watch_owner()
    else:
        take_number(sys.argv)
    RankEngine.launch_instance()
