"""From a fork of the server to a rank: undo what is the server's, set what is the rank's, start the engine.

Everything here runs in a child of :mod:`.forkserver`. A rank must find what a fresh process would find: its
own session, streams, environment, signals, random numbers and threads.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
import traceback

from ..lab.namespaces import HOST, HOST_ETC, enter_user
from ..system.deadman import OWNER, watch_owner


def become_rank(request: dict) -> None:
    """Turn this fork into a rank; ends the process, never returns.

    Args:
        request: what the server was asked: environment, argv, log and cwd.
    """
    code = 1
    try:
        from .engine import forget_other_jobs

        server = os.getppid()
        os.setsid()
        _own_streams(request["log"])
        _own_signals()
        _own_environment(request["environment"], server)
        _own_host()
        _own_folder(request["cwd"])
        forget_other_jobs()
        sys.argv = ["ipengine", *request["argv"]]
        watch_owner()
        _own_randomness()
        _own_torch()
        code = _run_engine(request["argv"])
    except BaseException:
        traceback.print_exc()
    finally:
        _leave(code)


def _own_streams(log: str) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(out)


def _own_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _own_environment(environment: dict[str, str], server: int) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.environ[OWNER] = str(server)


def _own_host() -> None:
    """Take the first of two steps to this rank's host, where it has one: possible with one thread only."""
    if HOST in os.environ:
        enter_user(int(os.environ[HOST]), os.environ[HOST_ETC])


def _own_folder(folder: str) -> None:
    # python -m put the server's folder first on the path; a fresh process would have put its own.
    if sys.path and sys.path[0] == os.getcwd():
        sys.path[0] = folder
    os.chdir(folder)


def _own_randomness() -> None:
    """Give this process random numbers of its own.

    Python's ``random`` seeds itself anew in a fork. numpy's global generator and torch's do not: without this every
    rank would draw the server's numbers, where processes that torchrun starts each draw their own.
    """
    import multiprocessing

    import numpy
    import torch

    numpy.random.seed()
    torch.default_generator.seed()
    multiprocessing.current_process().authkey = os.urandom(32)


def _own_torch() -> None:
    """Read again what torch has read from the server's environment while it was imported."""
    import torch
    import torch.distributed as dist

    threads = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    torch.set_num_threads(int(threads) if threads.isdigit() and int(threads) else _cores())
    if dist.is_available():
        dist.set_debug_level_from_env()


def _cores() -> int:
    """Count the cores that torch would use: physical ones, and only those this process may run on."""
    import psutil

    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed))


def _run_engine(argv: list[str]) -> int:
    from .engine import RankEngine

    try:
        RankEngine.launch_instance(argv=argv)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _leave(code: int) -> None:
    """End this process as Python would, without going back to where the server forked."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # Python's own end of threads, without a public name
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def tell_hub(engine: int, connection: str) -> None:
    """Tell the hub that an engine has gone, as ``KernelNanny.notify_exit`` in ipyparallel/engine/nanny.py does.

    Args:
        engine: the engine's id.
        connection: connection information of the controller, JSON.
    """
    import zmq
    from ipyparallel import util
    from jupyter_client.session import Session

    info = json.loads(connection)
    session = Session(key=info["key"].encode(), signature_scheme=info["signature_scheme"])
    session.packer, session.unpacker = info["pack"], info["unpack"]
    context = zmq.Context()
    hub = context.socket(zmq.DEALER)
    hub.LINGER = 3000
    keys = {}
    if info.get("curve_serverkey"):
        public, secret = zmq.curve_keypair()
        keys = {
            "curve_serverkey": info["curve_serverkey"].encode(),
            "curve_publickey": public,
            "curve_secretkey": secret,
        }
    util.connect(hub, f"{info['interface']}:{info['registration']}", **keys)
    session.send(hub, "unregistration_request", content={"id": engine})
    hub.close()
    context.term()
