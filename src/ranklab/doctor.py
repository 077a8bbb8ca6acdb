"""Is this machine ready? Every check with its finding and its fix; ``python -m ranklab doctor`` prints them.

The checks that talk run in processes of their own under a deadline, so the doctor comes back within half a minute
whatever is broken; on a machine with GPUs, or whose processors others take, within a minute and a half.
"""

from __future__ import annotations

import errno
import importlib.metadata
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from . import doctor_gpus
from .engines.choice import BASE_MB, RANK_MB, choose_launcher
from .errors import NoHosts
from .finding import LOOK_AGAIN, OK, PROBLEM, WARNING, Finding
from .lab.lab import Lab
from .layout import IMPATIENT, LOOPBACK, places
from .programs import lacking
from .system import leftovers
from .system.backends import BACKENDS, ON_CPUS, ON_GPUS, Backend, interfaces, sharing
from .system.gpus import VISIBLE, visible_gpus
from .system.memory import free_memory_mb
from .system.ports import reserve_port
from .system.trial import finish

TESTED = ("2.8", "2.13")  # torch, oldest first: what the helper's tests were run with (book/setup.md)
MADE_WITH = TESTED[-1]  # the outputs of the chapters
DEADLINE = 20.0
GPU_DEADLINE = 40.0  # CUDA's own start takes several seconds after a boot, and ranks that share a GPU take turns
SHARED_MB = 256  # ranks on GPUs and data loaders share memory there; Docker's own choice is 64
SOCKET_ROOM = 60  # characters a temporary folder may have: the path of a Unix socket ends at 107


def examine() -> list[Finding]:
    """Run all checks, those that take long side by side.

    Returns:
        A finding for each check, in the order in which they read well.

    Used by ``python -m ranklab doctor`` and on the setup page.
    """
    checks: list[Callable[[], Finding | list[Finding]]] = [_python, _torch, _cores, _memory, *doctor_gpus.checks()]
    checks += [*map(_talk, BACKENDS), *map(_share, BACKENDS), _ranks]
    checks += [_name, _interfaces, _hosts, _programs, _shared_memory, _ports, _files, _temporary, _home, _leftovers]
    with ThreadPoolExecutor(len(checks)) as threads:
        found = list(threads.map(_guarded, checks))
    return [finding for each in found for finding in (each if isinstance(each, list) else [each])]


def _guarded(check: Callable[[], Finding | list[Finding]]) -> Finding | list[Finding]:
    """Run a check; one that breaks is a finding as well."""
    try:
        return check()
    except Exception as error:
        name = getattr(check, "func", check).__name__.strip("_")
        return Finding(name, WARNING, f"could not be checked: {type(error).__name__}: {error}")


def _python() -> Finding:
    return Finding("Python", OK, f"{platform.python_version()} on {platform.system()}.")


def _torch() -> Finding:
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return Finding("torch", PROBLEM, "is not installed.", "Run `make run`, or pip install -r requirements.txt.")
    series = ".".join(version.split(".")[:2])
    if series == MADE_WITH:
        return Finding("torch", OK, f"{version}.")
    made = f"The book was made with torch {MADE_WITH}"
    if series in TESTED:
        said = f"{version} ran a selection of the helper's tests, and lacks names that some cells use."
        return Finding("torch", WARNING, said, f"{made}; the page *Run it on GPUs* lists the names.")
    return Finding("torch", WARNING, f"{version} is untested.", f"{made}; tested are {' and '.join(TESTED)}.")


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < 2:
        return Finding("CPU", WARNING, "1 core for this process.", "Everything runs, and slowly: use two or more.")
    return Finding("CPU", OK, f"{cores} cores for this process.")


def _memory() -> Finding:
    launcher, _ = choose_launcher(None)
    free = free_memory_mb()
    fit = max(0, (free - BASE_MB[launcher]) // RANK_MB[launcher])
    said = f"{free} MB are free: room for {fit} ranks that hold no data yet."
    if fit < 4:
        return Finding("memory", PROBLEM, said, "Stop other programs; chapters need four ranks.")
    return Finding("memory", OK, said)


def _talk(backend: Backend) -> Callable[[], Finding]:
    """Return the check that lets ranks talk over a backend."""

    def check() -> Finding:
        size = 2 if backend.device == "cpu" else min(2, visible_gpus())
        return _all_reduce(backend, size) if size else Finding(backend.name, OK, "no GPU, so not tried.")

    check.__name__ = backend.name
    return check


def _share(backend: Backend) -> Callable[[], Finding | list[Finding]]:
    """Return the check that lets two ranks talk that share a device; it is silent where there is none to share."""

    def check() -> Finding | list[Finding]:
        return _all_reduce(backend, 2, shared=True) if backend.host and visible_gpus() else []

    check.__name__ = f"{backend.name}, shared"
    return check


def _import_fix(problem: str) -> str:
    """Say what to do where Python could not even import what the probe needs, "" otherwise."""
    broken = problem.startswith(("ImportError", "ModuleNotFoundError"))
    return "Install torch again: `make clean ALL=1`, then `make run`." if broken else ""


def _interface_fix(problem: str) -> str:
    """Name the reader's own choice of a network interface, "" where the problem does not speak of it."""
    own = [f"{name}={os.environ[name]}" for name in interfaces(LOOPBACK) if os.environ.get(name, "\0") in problem]
    return f"Your environment has {' and '.join(own)}: unset it, and look again." if own else ""


def _all_reduce(backend: Backend, size: int, shared: bool = False) -> Finding:
    """Let processes add up numbers, as torchrun would start them, or all of them on the first GPU."""
    name = f"{backend.name}, shared" if shared else backend.name
    with reserve_port() as port:
        ranks = []
        for place in places([size]):
            environment = {**os.environ, **place.environment("127.0.0.1", port.getsockname()[1])}
            # As a world does it: what the reader has set is what the chapters get.
            environment |= {name: os.environ.get(name, value) for name, value in interfaces(LOOPBACK).items()}
            environment.setdefault(*IMPATIENT)
            if shared:
                environment |= sharing(backend.name, place.rank)
                environment[VISIBLE] = environment.get(VISIBLE, "0").split(",")[0]
            program = [sys.executable, "-m", "ranklab.rank.probe", backend.name]
            ranks.append(subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True))
        trial = finish(ranks, DEADLINE if backend.device == "cpu" else GPU_DEADLINE)
    what = f"all_reduce on {size} rank{'s' * (size > 1)}{' that share a GPU' * shared}"
    if trial.busy:
        return Finding(name, WARNING, f"{what} {trial.problem}", LOOK_AGAIN)
    if trial.problem:
        fix = (
            _import_fix(trial.problem)
            or _interface_fix(trial.problem)
            or (backend.try_sharing if shared else backend.try_next)
        )
        return Finding(name, PROBLEM, f"{what} failed: {trial.problem}", fix)
    return Finding(name, OK, f"{what} gives the exact numbers.")


def _ranks() -> Finding:
    """Start ranks as a notebook does."""
    program = "import ranklab, os\nwith ranklab.start(2) as w: w.push(x=1); assert w.pull('x') == [1, 1]"
    quiet = {**os.environ, "IPP_NONINTERACTIVE": "1"}
    child = subprocess.Popen([sys.executable, "-c", program], env=quiet, stderr=subprocess.PIPE, text=True)
    trial = finish([child], DEADLINE)
    if trial.busy:
        return Finding("ranks", WARNING, f"starting two {trial.problem}", LOOK_AGAIN)
    if trial.problem:
        return Finding("ranks", PROBLEM, f"do not start: {trial.problem}", "Fix the problems above, then look again.")
    return Finding("ranks", OK, f"two start, answer and stop ({choose_launcher(None)[0]}).")


def _name() -> Finding:
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return Finding(
            "host name",
            WARNING,
            "this machine's own name cannot be resolved.",
            "Ranks use loopback and do not need it; torchrun does: add the name to /etc/hosts, or pass "
            "`--rdzv-endpoint=127.0.0.1:0 --local-addr=127.0.0.1`.",
        )
    return Finding("host name", OK, "resolves.")


def _interfaces() -> Finding:
    up = sorted(name for name, state in psutil.net_if_stats().items() if state.isup)
    if LOOPBACK not in up:
        return Finding("interfaces", PROBLEM, f"no loopback interface {LOOPBACK!r}.", f"ip link set {LOOPBACK} up")
    return Finding("interfaces", OK, f"{', '.join(up)}; ranks of one machine use {LOOPBACK}.")


def _hosts() -> Finding:
    """Make two hosts and let one reach the other."""
    try:
        lab = Lab(2)
    except NoHosts as why:
        fix = f" To allow them: {why.fix}." if why.fix else ""
        return Finding("hosts", WARNING, why.reason, f"link= does without hosts.{fix}")
    knock = "import socket, sys; sys.exit(socket.socket().connect_ex((sys.argv[1], 9)) != int(sys.argv[2]))"
    with lab:
        # Nobody listens there: to be refused is to be heard.
        command = [sys.executable, "-I", "-S", "-c", knock, lab[1].name, str(errno.ECONNREFUSED)]
        lab[0].run(command, timeout=DEADLINE)
        missing = "" if lab.can_delay() else "; a delay is not possible (the kernel has no netem)"
    return Finding("hosts", OK, f"nodes can be hosts of their own, with a link of a set rate{missing}.")


def _programs() -> Finding:
    """Look for the programs that cells run."""
    missing = [program for program in lacking() if program.tag]
    if not missing:
        return Finding("programs", OK, "all that cells run is there.")
    names = ", ".join(program.name for program in missing)
    without = "; ".join(dict.fromkeys(program.without for program in missing))
    packages = " ".join(dict.fromkeys(program.package for program in missing))
    return Finding("programs", WARNING, f"no {names}: {without}.", f"sudo apt install {packages}")


def _shared_memory() -> Finding:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return Finding("/dev/shm", OK, f"is not there; {ON_CPUS.title} does not need it.")
    total = shutil.disk_usage(folder).total >> 20
    if total < SHARED_MB:
        fix = f"Data loaders with workers, and {ON_GPUS.title}, may fail: docker run --shm-size=1g."
        return Finding("/dev/shm", WARNING, f"holds {total} MB only.", fix)
    return Finding("/dev/shm", OK, f"holds {total} MB.")


def _ports() -> Finding:
    try:
        with reserve_port():
            return Finding("ports", OK, "the system gives free ones on loopback.")
    except OSError as error:
        return Finding("ports", PROBLEM, f"no port on loopback: {error.strerror}.", "Ask who runs this machine.")


def _files() -> Finding:
    try:
        import resource
    except ImportError:
        return Finding("open files", OK, "have no limit here.")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return Finding("open files", OK, "have no limit.")
    if limit < 256:
        return Finding("open files", PROBLEM, f"at most {limit}, too few.", "ulimit -n 1024, before Python starts.")
    return Finding("open files", OK, f"at most {limit}.")


def _temporary() -> Finding:
    try:
        folder = tempfile.gettempdir()
        with tempfile.TemporaryFile():
            pass
    except OSError:
        return Finding("temporary folder", PROBLEM, "cannot be written to.", "Set TMPDIR to a folder of yours.")
    if len(folder) > SOCKET_ROOM:
        return Finding("temporary folder", PROBLEM, "its path is too long for a socket.", "Set TMPDIR to a short path.")
    return Finding("temporary folder", OK, f"{shutil.disk_usage(folder).free >> 20} MB are free.")


def _home() -> Finding:
    home = Path.home()
    if home.is_dir() and os.access(home, os.W_OK):
        return Finding("home folder", OK, "can be written to.")
    fix = "Ranks do without; Jupyter and matplotlib take JUPYTER_DATA_DIR and MPLCONFIGDIR."
    return Finding("home folder", WARNING, "cannot be written to.", fix)


def _leftovers() -> Finding:
    left = leftovers.processes()
    if left:
        said = f"{len(left)} processes of a notebook that has gone."
        return Finding("leftovers", WARNING, said, "ranklab.start() ends them.")
    return Finding("leftovers", OK, "no process of a notebook that has gone.")
