"""Runs small programs and keeps what a terminal would show of them.

torch is imported once; each rank of a program is a fork of this process, so a program costs little more than what it
does. Nothing here has a port of its own: the ranks meet at a file.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

DEADLINE = 150  # seconds for one program, which takes two on a quiet machine
AT_ONCE = 4  # most programs wait for most of their time


@dataclass
class Program:
    """A small program.

    Attributes:
        act: what each rank does; it is called with the rank.
        ranks: how many processes run it.
        pids: those of its ranks that have not ended.
        folder: where it runs, and where each rank's output is kept.
        began: when it was started.
    """

    act: Callable[[int], object]
    ranks: int = 1
    pids: list[int] = field(default_factory=list)
    folder: str = ""
    began: float = 0.0


PROGRAMS: dict[str, Program] = {}


def program(ranks: int = 1) -> Callable:
    """Keep a function as a program, under the names of its module and its own."""

    def keep(act):
        PROGRAMS[f"{act.__module__.rpartition('.')[2]}.{act.__name__}"] = Program(act, ranks)
        return act

    return keep


def _die_with_the_stage():
    with contextlib.suppress(AttributeError):  # Linux alone has it
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _play(program: Program, rank: int) -> None:
    """Be one rank of a program, in a fork of this process."""
    _die_with_the_stage()
    heard = os.open(f"{program.folder}/{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(heard, 1)
    os.dup2(heard, 2)
    os.chdir(program.folder)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(program.ranks)}
    code = 0
    try:
        program.act(rank)
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _begin(program: Program, folder: str) -> None:
    program.folder, program.began = folder, time.monotonic()
    for rank in range(program.ranks):
        pid = os.fork()
        if not pid:
            with contextlib.suppress(OSError):
                os.setpgid(0, program.pids[0] if program.pids else 0)
            _play(program, rank)
        with contextlib.suppress(OSError):
            os.setpgid(pid, program.pids[0] if program.pids else pid)
        program.pids.append(pid)


def _ended(program: Program) -> bool:
    """Whether all its ranks are gone; those that took too long are ended, and so is what they have started."""
    late = time.monotonic() - program.began > DEADLINE
    for pid in list(program.pids):
        if late:
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, 0 if late else os.WNOHANG)[0]:
                program.pids.remove(pid)
    return not program.pids


def _heard(program: Program) -> str:
    texts = [f"{program.folder}/{rank}.txt" for rank in range(program.ranks)]
    return "\n".join(Path(text).read_text(errors="replace") for text in texts if Path(text).exists())


def run(names: list[str], folder: Path) -> dict[str, str]:
    """Run programs, some at once, and return what each has printed.

    Args:
        names: of programs.
        folder: where each of them gets a folder of its own.
    """
    waiting, running, heard = list(names), {}, {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            name = waiting.pop(0)
            (folder / name).mkdir()
            running[name] = PROGRAMS[name]
            _begin(PROGRAMS[name], str(folder / name))
        for name, program in list(running.items()):
            first = program.pids[0]
            if _ended(program):
                with contextlib.suppress(OSError):
                    os.killpg(first, signal.SIGKILL)  # what a program has started goes with it
                heard[name] = _heard(running.pop(name))
        time.sleep(0.01)
    return heard


if __name__ == "__main__":
    # Imported anew, for what runs as a program is a module of another name.
    from tests.messages import programs, stage

    programs.load()
    told = Path(sys.argv[1])
    told.write_text(json.dumps(stage.run(sys.argv[2:] or list(stage.PROGRAMS), told.parent)))
