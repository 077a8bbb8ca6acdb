"""torchrun whose ranks begin as copies of a process that has imported torch already.

``python -u copies.py MODULE PROGRAM …`` is ``python -m MODULE …``, the module of torchrun or of an older launcher, and
what torchrun does remains torchrun's: it meets, sets each rank's environment, watches the ranks and ends them. Only the
start of a rank is another one. torchrun starts ``python -u PROGRAM …``, and each such Python imports torch. Here one
process imports torch, once a launch, and a rank is a fork of it that runs the program as Python would: with its own
session, environment, ``sys.argv``, ``sys.path``, ``__main__`` and random numbers, and as a child of torchrun.

Whatever asks for another start gets torchrun's own: another interpreter, a module, a program that may change its
environment before it imports torch. It imports torch and nothing of ranklab. Linux only, where a process can adopt the
children of its children (PR_SET_CHILD_SUBREAPER).
"""

import ast
import builtins
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import time
import types
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = "RANKLAB_HOME"  # the launch's private folder, as in system/deadman.py
THREADS = "OMP_NUM_THREADS"
PR_SET_CHILD_SUBREAPER = 36
LENGTH = struct.Struct("!I")
PID = struct.Struct("!i")
POLL = 0.01
# What the first optimizer, DDP or compiled function imports (_disable_dynamo in torch/_compile.py, torch 2.13).
LATER, CALLS = "torch._dynamo", ("optim", "DistributedDataParallel", "fully_shard", "compile(")


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


class Nursery:
    """A process with one thread that has imported torch and becomes ranks; it ends with torchrun."""

    def __init__(self, program: str) -> None:
        self._socket, other = socket.socketpair()
        agent = os.getpid()
        if os.fork() == 0:
            self._socket.close()
            import_later(Path(program))
            serve(other, agent)
        other.close()

    def start(self, handler: object, args: tuple, env: dict[str, str]) -> Rank | None:
        """Return a rank that has begun, None where only a Python of its own will do.

        Args:
            handler: torch's ``SubprocessHandler``, whose streams are the rank's.
            args: the command.
            env: the whole environment.
        """
        streams = [handler._stdout, handler._stderr]  # type: ignore[attr-defined]
        if not all(streams) or args[:2] != (sys.executable, "-u") or not may_copy(Path(args[2])):
            return None
        request = json.dumps({"argv": args[2:], "environment": env}).encode()
        try:
            socket.send_fds(self._socket, [LENGTH.pack(len(request))], [stream.fileno() for stream in streams])
            self._socket.sendall(request)
            (pid,) = PID.unpack(_read(self._socket, PID.size))
        except (OSError, EOFError):  # it has ended: the system had no memory, say
            return None
        return Rank(args, pid) if pid else None


def may_copy(program: Path) -> bool:
    """Say whether a program does not mind that torch has been imported before its first line.

    One that may set variables for torch before it imports torch does mind, by itself or in a module beside it.
    """
    try:
        body = ast.parse(program.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return False  # Python's own error is the best one
    for statement in body:
        names = [name.split(".")[0] for name in _imports(statement)]
        if "torch" in names:
            return True
        if any((program.parent / name).exists() or (program.parent / f"{name}.py").exists() for name in names):
            return False
        if any(word in ast.unparse(statement) for word in ("environ", "putenv")):
            return False
    return True


def _imports(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.ImportFrom):
        return [statement.module or "."]
    return [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []


def import_later(program: Path) -> None:
    """Import, once for all ranks, what each would import at its first optimizer or DDP, where a program has such."""
    with contextlib.suppress(OSError, ValueError):
        if any(word in program.read_text() for word in CALLS):
            gc.disable()
            importlib.import_module(LATER)
            gc.freeze()
            gc.enable()


def serve(requests: socket.socket, agent: int) -> None:
    """Fork a rank at each request, until torchrun has ended; ends this process, and never returns.

    Args:
        requests: the other end is torchrun's.
        agent: torchrun's process id.
    """
    with contextlib.suppress(EOFError, OSError):  # torchrun has ended
        while True:
            length, (out, err) = _read_with_streams(requests)
            request = json.loads(_read(requests, length))
            alone = len(os.listdir("/proc/self/task")) == 1  # a fork takes one thread along, and locks of all
            pid = fork_below(agent) if alone else 0
            if pid is None:
                requests.close()
                become(request, out, err)
            os.close(out)
            os.close(err)
            if pid:
                _note(pid, request["environment"])
            requests.sendall(PID.pack(pid or 0))
    os._exit(0)


def fork_below(agent: int) -> int | None:
    """Fork a child of torchrun, which adopts what a child of its child leaves behind.

    Returns:
        The child's process id, 0 where the system refused; None in the child.
    """
    read, write = os.pipe()
    try:
        middle = os.fork()
    except OSError:
        middle = -1
    if middle == 0:
        parent, child = os.getpid(), 0
        with contextlib.suppress(OSError):
            child = os.fork()
            if child == 0:
                os.close(read)
                os.close(write)
                while os.getppid() == parent:
                    time.sleep(0.001)
                return None
        os.write(write, PID.pack(child))
        os._exit(0)
    os.close(write)
    with open(read, "rb") as answer:
        told = answer.read()
    if middle > 0:
        os.waitpid(middle, 0)
    return PID.unpack(told)[0] if told else 0


def become(request: dict, out: int, err: int) -> None:
    """Run a program in this fork as ``python -u PROGRAM …`` does; ends by ``SystemExit`` or a signal."""
    os.setsid()
    for source, target in ((out, 1), (err, 2)):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = list(request["argv"])
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(sys.argv[0])))
    _own_randomness()
    raise SystemExit(run(os.path.abspath(sys.argv[0])))


def _own_randomness() -> None:
    """Draw anew what numpy, torch and multiprocessing have drawn; Python's ``random`` does so itself in a fork."""
    import multiprocessing

    import torch

    if numbers := sys.modules.get("numpy.random"):
        numbers.seed()
    torch.default_generator.seed()
    multiprocessing.current_process().authkey = os.urandom(32)


def run(path: str) -> int:
    """Run a program as ``__main__``; return its exit status where it raises, with the traceback on stderr."""
    main = types.ModuleType("__main__")
    vars(main).update(__file__=path, __builtins__=builtins, __spec__=None, __cached__=None)
    sys.modules["__main__"] = main
    try:
        exec(compile(Path(path).read_bytes(), path, "exec"), vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        begin = error.__traceback__
        error.__traceback__ = begin.tb_next if begin else None  # the line above is not the program's
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0


def _note(pid: int, environment: dict[str, str]) -> None:
    """Write down what a rank's environment says of it: the system lists the one that torchrun was started with."""
    names = ("RANK", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE")
    told = {name: environment[name] for name in names if name in environment}
    with contextlib.suppress(OSError, KeyError):  # the folder is on the notebook's computer, which may be another one
        Path(environment[HOME], f"rank-{pid}.json").write_text(json.dumps(told))


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


def main(module: str, program: str) -> None:
    """Import torch, leave a copy of this process behind, and be torchrun.

    Args:
        module: what ``python -m`` would run.
        program: the program, whose words say what else its ranks will import.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # torchrun sets this variable for several ranks, and OpenMP reads it while torch is imported.
    one = THREADS not in os.environ and "--nproc-per-node=1" not in sys.argv
    if one:
        os.environ[THREADS] = "1"
    importlib.import_module("torch.distributed")
    if one:
        del os.environ[THREADS]
    nursery = Nursery(program)
    from torch.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

    torchs = SubprocessHandler._popen
    SubprocessHandler._popen = lambda handler, args, env: (
        nursery.start(handler, args, env) or torchs(handler, args, env)
    )
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
    own, module, program, *rest = sys.argv
    sys.argv = [own, *rest]
    main(module, program)
