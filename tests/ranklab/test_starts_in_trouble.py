"""Starts that meet trouble, many at once and many in a row: one sentence or a second try, and nothing is left."""

from __future__ import annotations

import concurrent.futures
import gc
import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest
from support import eventually, processes_of, stopwatch

import ranklab
from ranklab.cells import recovery
from ranklab.engines import choice, greeting, network, processes
from ranklab.engines.processes import Processes
from ranklab.errors import RanklabError, WorldError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ranks are forked on Linux only")
FIRST_ALL_REDUCE = """
import torch, torch.distributed as dist
dist.init_process_group()
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
"""


def everywhere(ranks: Processes, function, *arguments):
    return ranks.client[:].apply_async(function, *arguments).get(timeout=300)


def run(ranks: Processes, code: str):
    ranks.client[:].execute(code, block=False).get(timeout=300)


def value_of(name):
    return os.environ.get(name)


def test_more_ranks_than_memory_holds(monkeypatch):
    monkeypatch.setattr(choice, "free_memory_mb", lambda: choice.BASE_MB["fork"] + 3 * choice.RANK_MB["fork"] + 1)
    with pytest.raises(WorldError, match=r"4 ranks do not fit: .* so 3 would fit"):
        Processes([4])


def test_a_broken_torch_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch_cpu.so: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    clock = stopwatch()
    with pytest.raises(RanklabError, match=r"cannot import what they need: ImportError: libtorch_cpu\.so"):
        Processes([2])
    assert clock() < 30
    assert nothing_left(tmp_path)


def nothing_left(folder: Path) -> bool:
    """Say whether no process and no file of the worlds in this folder is left, after a moment."""
    gone = eventually(lambda: not any(home_of(process).startswith(str(folder)) for process in psutil.process_iter()))
    return gone and not list(folder.glob("ranklab-*"))


def home_of(process: psutil.Process) -> str:
    try:
        return process.environ().get("RANKLAB_HOME", "")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""


@pytest.mark.parametrize("moment", [0.2, 0.4, 0.6, 0.8, 1.0, 1.3])
def test_a_start_that_is_interrupted_leaves_nothing(tmp_path, moment):
    """The reader presses stop while ranks start, at moments when different processes exist."""
    program = "import ranklab; print('go', flush=True); ranklab.start(2).stop()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "go\n"
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    # It was faster than the interrupt, or was interrupted while it ran, or while Python itself was ending.
    assert process.returncode == 0 or "KeyboardInterrupt" in errors or process.returncode == -signal.SIGINT
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("free", [2, 10, 20, 30, 40, 50])
def test_too_few_open_files(free):
    """The notebook, the controller or a rank would fail, each at another place and with words of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.collect()  # what another test's ranks left open might be closed meanwhile
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + free, hard))
    try:
        with pytest.raises(RanklabError, match=r"open files.*ulimit -n"):
            Processes([8])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


PROGRAM = """
    import os, sys
    import ranklab
    world = ranklab.start(2)
    print(world.view([0, 1]).apply_async(lambda: __import__("os").environ["RANK"]).get(timeout=300))
    world.stop()
"""


@pytest.mark.parametrize("home", ["/proc", "/nonexistent/home"], ids=["read-only", "missing"])
def test_a_home_that_cannot_be_written(tmp_path, home):
    program = textwrap.dedent(PROGRAM)
    environment = {**os.environ, "HOME": home, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    environment.pop("IPYTHONDIR", None)
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=90)
    assert ran.stdout.strip() == "['0', '1']", ran.stderr
    assert nothing_left(tmp_path)


def test_a_temporary_folder_that_cannot_be_written(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/proc")
    with pytest.raises(RanklabError, match="a folder they can write to"):
        Processes([1])


def once(number: int) -> list:
    ranks = Processes([2])
    try:
        return [ranks.client[:].apply_async(lambda: os.environ["MASTER_PORT"]).get(timeout=300), str(ranks.home)]
    finally:
        ranks.stop()


def test_eight_worlds_at_once():
    """Each in a process of its own, as eight notebooks would be."""
    program = textwrap.dedent("""
        import os, sys, ranklab
        with ranklab.start(2) as world:
            print(world.view([0, 1]).apply_async(lambda: __import__("os").environ["MASTER_PORT"]).get(timeout=110))
    """)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(8)
    ]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda process: process.communicate(timeout=300)[0].strip(), started))
    assert [process.returncode for process in started] == [0] * 8
    assert len(set(said)) == 8, said


def test_six_starts_and_stops_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = psutil.Process()
    once(0)  # what is loaded and cached once
    children = {child.pid for child in mine.children(recursive=True)}
    before = mine.num_fds(), mine.num_threads()
    for number in range(6):  # twice what the limits below let pass
        once(number)
    assert not list(tmp_path.iterdir())
    assert eventually(lambda: {child.pid for child in mine.children(recursive=True)} <= children)
    assert mine.num_fds() <= before[0] + 3
    assert mine.num_threads() <= before[1] + 3


@pytest.fixture
def two():
    started = Processes([2])
    yield started
    started.stop()


@pytest.fixture
def thief(monkeypatch):
    """Another program that listens on the first port that each world chooses for rank 0, as a controller may."""
    thieves, stolen = [], []
    reserve = network.reserve_port

    def reserve_and_lose(*host):
        held = reserve(*host)
        if not stolen:
            thieves.append(socket.socket())
            thieves[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thieves[0].bind(held.getsockname())
            thieves[0].listen()
            stolen.append(held.getsockname()[1])
        return held

    monkeypatch.setattr(network, "reserve_port", reserve_and_lose)
    yield stolen
    for one in thieves:
        one.close()


def test_a_port_that_another_program_takes_costs_a_second_start(thief):
    with ranklab.start(2) as world:
        run(world.processes, FIRST_ALL_REDUCE)
        assert [str(world.processes.master_port)] * 2 == everywhere(world.processes, value_of, "MASTER_PORT")
        assert world.processes.master_port != thief[0]


def test_a_port_that_another_program_takes_while_ranks_recover(two, thief):
    assert recovery.regroup(two) == []
    assert len(thief) == 1
    assert two.master_port != thief[0]
    run(two, FIRST_ALL_REDUCE)


def test_ranks_that_come_up_and_never_answer_cost_a_second_start(monkeypatch):
    greet_all, attempts = processes.greet_all, []

    def stop_one_first(client, ranks, may_still_come, pids):
        attempts.append(pids)
        if len(attempts) == 1:
            os.kill(pids[-1], signal.SIGSTOP)
        greet_all(client, ranks, may_still_come, pids)

    monkeypatch.setattr(processes, "greet_all", stop_one_first)
    monkeypatch.setattr(greeting, "UNHEARD", 3.0)
    with ranklab.start(2) as world:
        run(world.processes, FIRST_ALL_REDUCE)
    assert len(attempts) == 2


def test_a_scheduler_that_dies_while_it_starts_costs_a_second_start(monkeypatch):
    """Where many clusters start at once, one may take the port that a scheduler of another was about to bind."""
    settle, attempts = Processes._settle_launcher, []

    def kill_a_scheduler(self):
        attempts.append(self)
        if len(attempts) == 1:
            controller = psutil.Process(self._cluster.controller.pid)
            assert processes._poll(lambda: len(controller.children()) == 8, 20)
            controller.children()[-1].kill()
        return settle(self)

    monkeypatch.setattr(Processes, "_settle_launcher", kill_a_scheduler)
    world = ranklab.start(2)
    assert len(attempts) == 2
    assert world._call(os.getpid)[1] == ""
    world.stop()
    assert processes_of(str(attempts[0].home)) == []
