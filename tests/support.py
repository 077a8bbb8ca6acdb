"""What the tests of ranklab share: a notebook without a browser, and looks at processes and texts."""

import contextlib
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import kept
import psutil
import pytest

from ranklab.errors import RanklabError
from ranklab.system import load


@dataclass
class Shown:
    """What a cell showed: printed text, displayed bundles, the error that ended it."""

    text: str
    error: BaseException | None
    html: str = ""
    metadata: list[dict] = field(default_factory=list)
    mimetypes: list[set] = field(default_factory=list)


class Notebook:
    """Runs cells in one IPython shell."""

    def __init__(self):
        from IPython.core.interactiveshell import InteractiveShell

        self.shell = InteractiveShell.instance()
        self.names = self.shell.user_ns

    def run(self, cell: str) -> Shown:
        from IPython.utils.capture import capture_output

        with capture_output() as captured:
            result = self.shell.run_cell(cell)
        error = result.error_in_exec or result.error_before_exec
        if isinstance(error, pytest.fail.Exception):  # of pytest, the end of a test's time: no cell has raised it
            raise error
        printed = captured.stdout
        if isinstance(error, RanklabError):  # this shell prints an error on stdout; a notebook shows it by itself
            printed = printed.replace(error._render_traceback_()[0] + "\n", "")
        texts = [printed] if printed else []
        texts += [output.data.get("text/plain", "") for output in captured.outputs]
        return Shown(
            "\n".join(texts).rstrip("\n"),
            error,
            "".join(output.data.get("text/html", "") for output in captured.outputs),
            [output.metadata or {} for output in captured.outputs],
            [set(output.data) for output in captured.outputs],
        )

    def px(self, cell: str, options: str = "") -> Shown:
        return self.run(f"%%px {options}\n{cell}")


@contextlib.contextmanager
def started(notebook: Notebook, call: str) -> Iterator[Notebook]:
    """A notebook in which ``world = call`` has come up; its ranks are stopped afterwards."""
    kept.end()
    shown = notebook.run(f"world = {call}")
    assert shown.error is None, shown.error
    yield notebook
    notebook.run("world.stop()")


def stopwatch() -> Callable[[], float]:
    """Return a clock that counts from now what other programs leave of the processors' time, in seconds.

    On a quiet machine it is the clock on the wall; a test that asserts seconds holds beside other work, too.
    """
    began = load.now()

    def seconds() -> float:
        until = load.now()
        return (until.clock - began.clock) * (1 - load.taken_by_others(began, until))

    return seconds


def eventually(condition: Callable[[], object], seconds: float = 300) -> bool:
    """Wait until a condition holds, and say whether it does; at once on a quiet machine, minutes are for a busy one."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def processes_of(home: str) -> list[psutil.Process]:
    """Return the processes that were started for the world with this private folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("RANKLAB_HOME") == home and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def answer(arguments: str, body: str) -> Callable:
    """Return a function with this body as a notebook's cell has it: it travels to the ranks by value."""
    head = f"def answer({arguments}):\n    import torch\n    import torch.distributed as dist\n"
    names = {"__name__": "__main__"}
    exec(compile(head + textwrap.indent(body.strip("\n"), "    "), "ipykernel_1/2.py", "exec"), names)
    return names["answer"]


def changed(body: str, old: str, new: str) -> str:
    """Exchange a text that is there."""
    assert old in body, old
    return body.replace(old, new)


def steady(text: str) -> str:
    """Fail where a text holds what differs between runs or machines."""
    assert not re.search(r"(/tmp|/home|/root|site-packages|:\d{4,5}\b|\bpid\b)", text), text
    return text


PROGRAM = """
    import sys, time
    import ranklab
    world = ranklab.start(2{asked})
    print(world.processes.home, flush=True)
    {then}
"""


def owner(then: str, backend: str = "") -> tuple[subprocess.Popen, str]:
    """Start a process that owns two ranks, on a backend where one is named; return it and the ranks' private folder."""
    asked = f", backend={backend!r}" if backend else ""
    program = textwrap.dedent(PROGRAM).format(then=then, asked=asked)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()
