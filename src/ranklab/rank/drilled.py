"""The ranks of a drill: torch is imported once, then each rank is forked and runs the program of the drill.

``python -m ranklab.rank.drilled FOLDER SIZE`` gives every rank the variables that torchrun sets and a log of its own
in the folder, and notes how it ended. A rank has a thread that counts how long the rank has not moved and, when the
notebook asks, writes down the stacks and what the flight recorder holds. It ends when it is ended from outside.
"""

from __future__ import annotations

import io
import json
import linecache
import os
import sys
import threading
import time
import traceback
import types
from pathlib import Path
from typing import Any, TextIO

from . import recorder

PROGRAM = "program.py"
OUTSIDE = "outside.json"  # {"rank": 2, "after": "step 3", "signal": 9}
ASKED = "asked"
LOOK = 0.1
LIBRARY_FRAMES = 2
ADDRESS = "127.0.0.1"


def main(folder: Path, size: int) -> None:
    """Start the ranks, note how each ends, and stay until this process is ended."""
    from torch.distributed import TCPStore

    os.chdir(folder)
    ranks, ports = {}, []
    for rank in range(size):
        read, write = os.pipe()
        # The store has threads, and a process with threads is not forked: it starts when all ranks are there.
        if pid := os.fork():
            os.close(read)
            ranks[pid] = rank
            ports.append(write)
            note(f"rank-{rank}.pid", str(pid))
            continue
        os.close(write)
        _be(rank, size, int(os.read(read, 16)))
    store = TCPStore(ADDRESS, 0, size, is_master=True, wait_for_workers=False)
    for write in ports:
        os.write(write, str(store.port).encode())
    while ranks:
        pid, status = os.wait()
        if pid in ranks:
            note(f"rank-{ranks.pop(pid)}.exit", str(os.waitstatus_to_exitcode(status)))
    threading.Event().wait()


def note(name: str, text: str) -> None:
    """Write a file that is either complete or not there."""
    Path(f"{name}.part").write_text(text, encoding="utf8")
    os.replace(f"{name}.part", name)


def _be(rank: int, size: int, port: int) -> None:
    """Be one rank: run the program as torchrun would, and end this process."""
    own = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
    meet = {"MASTER_ADDR": ADDRESS, "MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": True}
    os.environ.update({name: str(value) for name, value in (own | meet).items()})
    log = os.open(f"rank-{rank}.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    outside = json.loads(Path(OUTSIDE).read_text())
    sys.stdout = _Out(_lines(1), outside if outside.get("rank") == rank else {})
    sys.stderr = _lines(2)
    threading.Thread(target=_watch, args=(rank,), daemon=True).start()
    os._exit(_run())


def _lines(descriptor: int) -> TextIO:
    """Return a file that writes line by line, and stays open as long as this process."""
    return io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), "utf8", line_buffering=True)


def _run() -> int:
    """Run the program; return the exit status that Python would give it."""
    module = types.ModuleType("__main__")
    module.__file__ = PROGRAM
    sys.modules["__main__"], sys.argv = module, [PROGRAM]
    try:
        exec(compile(Path(PROGRAM).read_text(encoding="utf8"), PROGRAM, "exec"), vars(module))
    except Exception as error:
        frames = error.__traceback__.tb_next if error.__traceback__ else None
        sys.stderr.write("".join(traceback.format_exception(type(error), error, frames)))
        return 1
    return 0


class _Out:
    """Standard output, behind which something happens from outside after a certain line.

    Args:
        file: where the text goes.
        outside: what happens: after which text, and which signal; empty where nothing does.
    """

    def __init__(self, file: TextIO, outside: dict) -> None:
        self._file, self._outside, self._seen = file, outside, ""

    def write(self, text: str) -> int:
        """Write, and let happen what is due."""
        written = self._file.write(text)
        self._seen += text
        if self._outside and self._outside["after"] in self._seen and text.endswith("\n"):
            signal, self._outside = self._outside["signal"], {}
            os.kill(os.getpid(), signal)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _watch(rank: int) -> None:
    """Count how often in a row this rank was found where it was before; tell all when the notebook asks."""
    still, before, answered = 0, None, ""
    while True:
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        at = (frame.f_code.co_filename, frame.f_lineno, frame.f_lasti) if frame else None
        now = (at, recorder.calls(), os.fstat(1).st_size)
        still = still + 1 if now == before else 0
        before = now
        note(f"rank-{rank}.still", str(still))
        asked = Path(ASKED).read_text() if os.path.exists(ASKED) else ""
        if asked != answered:
            note(f"rank-{rank}.told", json.dumps({"asked": asked, "stacks": stacks(), "calls": _calls()}))
            answered = asked
        time.sleep(LOOK)


def stacks() -> list[dict]:
    """Return, for each thread that is in the program: its name, and its frames with the latest call last."""
    told: list[dict] = []
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        frames, at = [], frame
        while at is not None:
            frames.append(at)
            at = at.f_back  # type: ignore[assignment]
        frames.reverse()
        places = [place for place, each in enumerate(frames) if each.f_code.co_filename == PROGRAM]
        if places and ident != threading.get_ident():
            told.append({"thread": names.get(ident, ""), "frames": _frames(frames[places[0] :])})
    return told


def _frames(frames: list[types.FrameType]) -> list[dict]:
    """Return frames as plain data; of libraries only those right below the program."""
    told: list[dict] = []
    library = 0
    for frame in frames:
        code, module = frame.f_code, frame.f_globals.get("__name__", "")
        if code.co_filename == PROGRAM:
            text = linecache.getline(PROGRAM, frame.f_lineno).strip()
            told.append({"line": frame.f_lineno, "name": code.co_name, "text": text})
            library = 0
        elif module.endswith("c10d_logger") or library == LIBRARY_FRAMES:
            continue  # torch's decorator of every collective
        else:
            library += 1
            told.append({"line": 0, "name": code.co_name, "text": module})
    return told


def _calls() -> dict:
    """Return what the flight recorder holds, with the ranks of each group."""
    entries = [
        {"group": each.group, "number": each.number, "name": each.name, "sizes": each.sizes, "type": each.type}
        for each in recorder.collectives()
    ]
    return {"groups": recorder.groups(), "entries": entries}


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
