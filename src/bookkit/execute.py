"""Execute one chapter, and make sure that nothing of it stays behind."""

import asyncio
import os
import signal
import tempfile
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell

from bookkit.errors import ChapterError, count
from bookkit.leash import HURRY_SECONDS, LEAVE_SECONDS, Brood
from bookkit.needs import EXPECTED_ERROR, kept, raises, repeatable
from bookkit.notebook import cell_name, code_cells, read
from bookkit.sockets import through_files

CELL_SECONDS = 600  # a quiet machine needs a tenth of it
STARTUP_SECONDS = 600  # of a kernel; on a busy machine a minute is not enough


class Interrupted(KeyboardInterrupt):
    """The user or the system asked us to stop; ``signum`` says how."""

    def __init__(self, signum):
        self.signum = signum
        super().__init__(signum)


class _ThisInterpreter(KernelSpecManager):
    """Knows one kernel: the interpreter we run in, whatever "python3" means elsewhere."""

    def get_kernel_spec(self, kernel_name):
        return KernelSpec(resource_dir="", **get_kernel_dict())


def execute(path, **wishes):
    """Run every cell of a chapter in a fresh kernel of this interpreter and return the notebook.

    Args:
        path: the chapter; the file is read, never written. The kernel runs in its folder.
        wishes: what ``executed`` takes.

    Raises:
        ChapterError: as ``executed`` does.
        Interrupted: SIGINT or SIGTERM arrived; kernel and ranks have left by then.
    """
    return stoppable(executed(path, **wishes))


def stoppable(work):
    """Run a coroutine to its end; SIGINT and SIGTERM cancel it, and it may tidy up.

    Raises:
        Interrupted: one of them came.
    """

    async def watched():
        with _interruptible() as interrupted:
            try:
                return await work
            except (ChapterError, asyncio.CancelledError):
                # nbclient takes a cancelled cell for a dead kernel, so ask first whether we were told to stop.
                if interrupted:
                    raise Interrupted(interrupted[0]) from None
                raise

    return asyncio.run(watched())


async def executed(path, *, notebook=None, title=None, advance=lambda done, what="": None, seconds=CELL_SECONDS):
    """Run every cell of a chapter, beside others where several are awaited at once, and return the notebook.

    A cell that needs a GPU, on a machine without one, is not run and keeps what is stored.

    Args:
        path: the chapter; the file is read, never written. The kernel runs in its folder.
        notebook: what to run in place of what the file holds; it gets the outputs.
        title: what errors call the chapter; its path where not given.
        advance: called with the number of code cells done and the one that runs now.
        seconds: how long a cell may take.

    Raises:
        ChapterError: a cell failed, did not fail although tagged ``raises-exception``, took too
            long, killed the kernel, or the chapter left processes behind (they are ended).
    """
    notebook, title = notebook or read(path), title or str(path)
    brood = Brood()
    with tempfile.TemporaryDirectory(prefix="bookkit-") as private, brood.guarded():
        environment = os.environ | repeatable(private) | brood.environment
        log = Path(private, "kernel.log")
        try:
            await _execute(notebook, title, Path(path).parent, environment, log, advance, seconds)
            left = await asyncio.to_thread(brood.survivors, LEAVE_SECONDS)
        except BaseException:
            await asyncio.to_thread(brood.survivors, HURRY_SECONDS)
            await asyncio.to_thread(brood.end)
            raise
        if left:
            ended = brood.end()
            raise ChapterError(
                title,
                f"{LEAVE_SECONDS} s after its end it had left behind {count(len(left), 'process', 'processes')}. "
                "Does its last cell stop the ranks? What was killed:",
                error="\n".join(ended),
            )
    return notebook


async def _execute(notebook, title, folder, environment, log, advance, seconds):
    manager = AsyncKernelManager(kernel_spec_manager=_ThisInterpreter())
    manager.shutdown_wait_time = 10  # half of it is for atexit: the ranks are stopped there
    through_files(manager, log.parent)
    client = NotebookClient(
        notebook,
        km=manager,
        timeout=seconds,
        iopub_timeout=30,  # on a busy machine 4 s, the default, may lose a cell's last output
        raise_on_iopub_timeout=True,
        record_timing=False,
        store_widget_state=False,
    )
    with open(log, "wb") as output:
        await manager.start_kernel(
            extra_arguments=["--HistoryManager.hist_file=:memory:"],
            cwd=str(folder),
            env=environment,
            stdout=output,
            stderr=output,
        )
        try:
            async with _channels(client, manager, title, log):
                await _run_cells(client, notebook, title, advance)
        finally:
            await manager.shutdown_kernel()


@asynccontextmanager
async def _channels(client, manager, title, log):
    """The client connected to a kernel that has answered."""
    client.kc = manager.client()
    client.kc.start_channels()
    try:
        try:
            await client.kc.wait_for_ready(timeout=STARTUP_SECONDS)
        except RuntimeError as error:
            said = log.read_text(errors="replace")[-2000:]
            raise ChapterError(title, f"the kernel did not start: {error}", error=said) from error
        client.kc.allow_stdin = False
        yield
    finally:
        client.kc.stop_channels()


@contextmanager
def _interruptible():
    """Turn SIGINT and SIGTERM into the end of the current task; yields the signals that came."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    received: list[int] = []

    def stop(signum):
        received.append(signum)
        if task and len(received) == 1:  # a second Ctrl-C must not disturb the shutdown that the first began
            task.cancel()

    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stop, signum)
    try:
        yield received
    finally:
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(signum)


async def _run_cells(client, notebook, title, advance):
    for index, number, cell in code_cells(notebook):
        advance(number - 1, cell.source.strip().split("\n")[0][:40])
        # In place of a kept cell something runs that does nothing: IPython counts on, so that "Cell In[7]" in an error
        # below it is the same on every machine.
        running = new_code_cell("pass") if kept(cell) else cell
        running.execution_count, running.outputs = None, []
        replies: list[dict] = []
        client.on_cell_executed = lambda *, execute_reply, replies=replies, **_: replies.append(execute_reply)
        where = {"cell": cell_name(notebook, index), "source": cell.source}
        try:
            await client.async_execute_cell(running, index, execution_count=number)
        except CellTimeoutError as error:
            late = f"finished, but its output had not arrived {client.iopub_timeout} s later; is the machine too busy?"
            # nbclient tells the two apart by nothing but the words.
            reason = late if "IOPub" in str(error) else f"did not finish within {client.timeout} s"
            raise ChapterError(title, reason, **where) from None
        except DeadKernelError:
            raise ChapterError(title, "killed the notebook's kernel", **where) from None
        except CellExecutionError as error:
            raise ChapterError(title, "failed", error=error.traceback, **where) from None
        failed = any(reply["content"]["status"] == "error" for reply in replies)
        notebook.cells[index] = cell  # nbclient puts there what it ran
        if failed and not raises(cell):  # nbclient lets it pass, for a cell that needs a GPU is tagged so
            said = "\n".join(line for output in cell.outputs for line in output.get("traceback", ()))
            raise ChapterError(title, "failed", error=said, **where)
        if running is cell and raises(cell) and not failed:
            reason = f"is tagged {EXPECTED_ERROR} but raised nothing; fix the cell or remove the tag"
            raise ChapterError(title, reason, **where)
        advance(number)
