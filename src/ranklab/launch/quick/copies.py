"""torchrun whose ranks begin as copies of a process that has imported torch already.

``python -u copies.py MODULE …`` is ``python -m MODULE …``, the module of torchrun or of an older launcher, and what
torchrun does remains torchrun's: it meets, sets each rank's environment, watches the ranks and ends them. Only the
start of a rank is another one. torchrun starts ``python -u PROGRAM …``, and each such Python imports torch. Here one
process imports torch, once a launch, and a rank is a fork of it that runs the program as Python would: with its own
session, environment, ``sys.argv``, ``sys.path``, ``__main__`` and random numbers, and as a child of torchrun.

Whatever asks for another start gets torchrun's own: another interpreter, say, or a module. Which programs would notice
that torch has been imported before them is decided in the notebook (:mod:`ranklab.launch.copied`). This file imports
torch, and nothing that torch itself imports later: with torch._dynamo imported here, one launch of DDP in six hung at
its end, where a process group joins a thread that waits for the GIL (ProcessGroupGloo, torch 2.13). It imports nothing
of ranklab. Linux only, where a process can adopt the children of its children.
"""

import builtins
import contextlib
import ctypes
import importlib
import importlib.machinery
import json
import os
import runpy
import socket
import struct
import subprocess
import sys
import time
import types
from pathlib import Path

HERE = os.path.dirname(os.path.realpath(__file__))
HOME = "RANKLAB_HOME"  # the launch's private folder, as in system/deadman.py
THREADS, PROCESSES = "OMP_NUM_THREADS", "--nproc-per-node="
PR_SET_CHILD_SUBREAPER = 36
LENGTH, PID = struct.Struct("!I"), struct.Struct("!i")
POLL = 0.01


class Rank:
    """A rank that was forked, with what torchrun uses of :class:`subprocess.Popen`."""

    def __init__(self, args: tuple, pid: int) -> None:
        self.args, self.pid = args, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit status, None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises ``subprocess.TimeoutExpired`` where that takes longer than ``timeout`` seconds."""
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (status := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            time.sleep(POLL)
        return status


class Born(BaseException):
    """Raised in a new rank to leave what the nursery did; its arguments are those of :func:`become`."""


class Nursery:
    """A process with one thread that has imported torch and becomes ranks; it ends with torchrun."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair()
        agent = os.getpid()
        if os.fork() == 0:
            self._socket.close()
            raise Born(*serve(other, agent))
        other.close()

    def start(self, handler: object, args: tuple, env: dict[str, str]) -> Rank | None:
        """Return a rank that has begun, None where only a Python of its own will do.

        Args:
            handler: torch's ``SubprocessHandler``, whose streams are the rank's.
            args: the command.
            env: the whole environment.
        """
        streams = [handler._stdout, handler._stderr]  # type: ignore[attr-defined]
        if not all(streams) or args[:2] != (sys.executable, "-u") or args[2] == "-m":
            return None
        cpus = sorted(os.sched_getaffinity(0))  # which torchrun's numa binding changes
        request = json.dumps({"argv": args[2:], "environment": env, "cpus": cpus}).encode()
        # Only while a rank is born: what it leaves behind later is the warden's.
        if _adopt(True) != 0:
            return None
        try:
            socket.send_fds(self._socket, [LENGTH.pack(len(request))], [stream.fileno() for stream in streams])
            self._socket.sendall(request)
            (pid,) = PID.unpack(_read(self._socket, PID.size))
        except (OSError, EOFError):  # it has ended: the system had no memory, say
            return None
        finally:
            _adopt(False)
        return Rank(args, pid) if pid else None


def serve(requests: socket.socket, agent: int) -> tuple[dict, int, int]:
    """Fork a rank at each request; ends this process when torchrun has ended.

    Args:
        requests: the other end is torchrun's.
        agent: torchrun's process id.

    Returns:
        In the process of a rank: what was asked, and the descriptors of its stdout and stderr.
    """
    with contextlib.suppress(EOFError, OSError):  # torchrun has ended
        while True:
            length, (out, err) = _read_with_streams(requests)
            request = json.loads(_read(requests, length))
            alone = len(os.listdir("/proc/self/task")) == 1  # a fork takes one thread along, and locks of all
            pid, go = fork_below(agent) if alone else (0, -1)
            if pid is None:
                requests.close()
                return request, out, err
            os.close(out)
            os.close(err)
            if pid:
                _note(pid, request["environment"])
            requests.sendall(PID.pack(pid))
            if go >= 0:  # from here on torchrun knows of it; had this process ended before, the rank would
                with contextlib.suppress(BrokenPipeError):
                    os.write(go, b"\0" if pid else b"")
                os.close(go)
    os._exit(0)


def fork_below(agent: int) -> tuple[int | None, int]:
    """Fork a child of torchrun, which adopts what a child of its child leaves behind; it leads a session of its own.

    Returns:
        The child's process id, 0 where the system refused, and a descriptor: the child waits until a byte is written to
        it, and ends where it is closed. None in the child.
    """
    (read, write), (wait, go) = os.pipe(), os.pipe()
    try:
        middle = os.fork()
    except OSError:
        middle = -1
    if middle == 0:
        with contextlib.suppress(OSError):
            if os.fork() == 0:
                os.setsid()
                os.close(read)
                os.close(go)
                os.write(write, PID.pack(os.getpid()))
                os.close(write)
                if not os.read(wait, 1) or os.getppid() != agent:
                    os._exit(1)
                os.close(wait)
                return None, -1
        os._exit(0)
    os.close(write)
    os.close(wait)
    with open(read, "rb") as answer:
        told = answer.read()
    if middle > 0:
        os.waitpid(middle, 0)
    return PID.unpack(told)[0] if told else 0, go


def become(request: dict, out: int, err: int) -> None:
    """Run a program in this process as ``python -u PROGRAM …`` does."""
    for source, target in ((out, 1), (err, 2)):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.sched_setaffinity(0, request["cpus"])
    sys.argv = list(request["argv"])
    sys.orig_argv = [sys.executable, "-u", *sys.argv]
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(sys.argv[0])))
    _own_randomness()
    run(os.path.join(os.getcwd(), sys.argv[0]))


def _own_randomness() -> None:
    """Draw anew what numpy, torch and multiprocessing have drawn; Python's ``random`` does so itself in a fork."""
    import multiprocessing

    import torch

    if numbers := sys.modules.get("numpy.random"):
        numbers.seed()
    torch.default_generator.seed()
    multiprocessing.current_process().authkey = os.urandom(32)


def run(path: str) -> None:
    """Run a program as ``__main__``; what it raises ends this Python, which shows the program's lines alone."""
    main = types.ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    vars(main).update(__file__=path, __builtins__=builtins, __loader__=loader, __cached__=None, __annotations__={})
    sys.modules["__main__"] = main
    try:
        exec(compile(Path(path).read_bytes(), path, "exec"), vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        trace, hook = error.__traceback__ and error.__traceback__.tb_next, sys.excepthook

        def show(kind: type[BaseException], value: BaseException, _: object) -> None:
            sys.excepthook, sys.last_traceback, value.__traceback__ = hook, trace, trace
            hook(kind, value, trace)

        sys.excepthook = show
        raise


def _note(pid: int, environment: dict[str, str]) -> None:
    """Write down what a rank's environment says of it: the system lists the one that torchrun was started with."""
    names = ("RANK", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE")
    told = {name: environment[name] for name in names if name in environment}
    with contextlib.suppress(OSError, KeyError):  # the folder is on the notebook's computer, which may be another one
        Path(environment[HOME], f"rank-{pid}.json").write_text(json.dumps(told))


def _adopt(whether: bool) -> int:
    """Have this process adopt what its descendants leave behind, or no longer; returns 0, or −1 where that fails."""
    return ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(whether), 0, 0, 0)


def _read(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (part := stream.recv(size - len(data))):
            raise EOFError
        data += part
    return data


def _read_with_streams(stream: socket.socket) -> tuple[int, list[int]]:
    data, streams, _, _ = socket.recv_fds(stream, LENGTH.size, 2)
    if not data:
        raise EOFError
    return LENGTH.unpack(data + _read(stream, LENGTH.size - len(data)))[0], streams


def main(module: str) -> None:
    """Import torch, leave a copy of this process behind, and be torchrun.

    Args:
        module: what ``python -m`` would run.
    """
    # torchrun sets this variable for several ranks, and OpenMP reads it while torch is imported.
    processes = next((word for word in sys.argv if word.startswith(PROCESSES)), "")
    one = THREADS not in os.environ and processes != f"{PROCESSES}1"
    if one:
        os.environ[THREADS] = "1"
    importlib.import_module("torch.distributed")
    if one:
        del os.environ[THREADS]
    nursery = Nursery()
    from torch.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

    torchs = SubprocessHandler._popen
    SubprocessHandler._popen = lambda handler, args, env: (
        nursery.start(handler, args, env) or torchs(handler, args, env)
    )
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path[:] = [folder for folder in sys.path if os.path.realpath(folder) != HERE]
    own, module, *rest = sys.argv
    sys.argv = [own, *rest]
    try:
        main(module)
    except Born as born:
        asked = born.args
    else:
        sys.exit()
    become(*asked)
