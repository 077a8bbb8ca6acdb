"""The fork server: each rank is as a fresh process would be, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import timeit
from pathlib import Path

import psutil
import pytest
from support import eventually, processes_of, stopwatch

import ranklab
from ranklab.engines import processes
from ranklab.engines.forking import Server
from ranklab.engines.processes import Processes
from ranklab.errors import WorldError
from ranklab.system.home import last_words

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ranks are forked on Linux only")
FIRST_ALL_REDUCE = """
import torch, torch.distributed as dist
dist.init_process_group()
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def four():
    started = Processes([4])
    yield started
    started.stop()


def everywhere(ranks: Processes, function, *arguments):
    return ranks.client[:].apply_async(function, *arguments).get(timeout=300)


def run(ranks: Processes, code: str):
    ranks.client[:].execute(code, block=False).get(timeout=300)


def look():
    """Return what a process can find out about itself; compared with what a fresh one says."""
    import multiprocessing
    import signal
    import sys

    import numpy
    import torch
    import torch.distributed as dist

    return {
        "torch": torch.rand(4).tolist(),
        "debug": str(dist.get_debug_level()),
        "threads": torch.get_num_threads(),
        "argv0": sys.argv[0],
        "leader": os.getsid(0) == os.getpid() == os.getpgrp(),
        "stdin": os.readlink("/proc/self/fd/0"),
        "sigchld": signal.getsignal(signal.SIGCHLD),
        "numpy": numpy.random.random(4).tolist(),
        "random": __import__("random").random(),
        "authkey": bytes(multiprocessing.current_process().authkey),
        "cuda": torch.cuda.is_initialized(),
        "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
    }


def test_every_rank_is_like_a_fresh_process(four):
    told = everywhere(four, look)
    for entry in told:
        assert entry["threads"] == 1
        assert entry["leader"]
        assert entry["stdin"] == os.devnull
        assert not entry["cuda"]
        assert entry["blocked"] == []
        assert entry["sigchld"] == signal.SIG_DFL
    for name in ("torch", "numpy", "random", "authkey"):
        assert len({str(entry[name]) for entry in told}) == 4, name


def test_ranks_do_not_hold_the_servers_pipes(four):
    def pipes():
        found = set()
        for name in os.listdir("/proc/self/fd"):
            try:
                found.add(os.readlink(f"/proc/self/fd/{name}"))
            except OSError:
                continue
        return found

    server = Path("/proc", str(four._server.pid), "fd")
    servers = {os.readlink(server / name) for name in ("0", "1")}
    for held in everywhere(four, pipes):
        assert not servers & held


def test_the_server_has_one_thread_and_no_context(four):
    server = psutil.Process(four._server.pid)
    assert server.num_threads() == 1
    assert not server.net_connections()


def test_environment_log_and_folder(four):
    told = everywhere(four, lambda: (os.environ["RANK"], os.environ["MASTER_PORT"], os.getcwd()))
    assert told == [(str(rank), str(four.master_port), os.getcwd()) for rank in range(4)]
    run(four, "import os; os.write(2, b'last words of rank %d' % int(os.environ['RANK']))")
    for rank in range(4):
        assert last_words(four.home, rank) == f"last words of rank {rank}"
        assert "Completed registration" in Path(four._set.ranks[rank].output_file).read_text()


def value_of(name):
    return os.environ.get(name)


def test_a_replaced_rank_gets_the_environment_of_its_siblings(four, monkeypatch):
    monkeypatch.setenv("SET_AFTER_START", "yes")
    four.signal(3, signal.SIGKILL)
    replace(four, 3)
    assert everywhere(four, value_of, "SET_AFTER_START") == [None] * 4


def test_what_torch_reads_when_imported_is_read_again(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    ranks = Processes([1])
    try:
        (told,) = everywhere(ranks, look)
        assert "DETAIL" in told["debug"]
        assert told["threads"] == 2
    finally:
        ranks.stop()


def replace(ranks: Processes, rank: int) -> float:
    assert eventually(lambda: ranks.exit_code(rank) is not None)
    clock = stopwatch()
    ranks.replace([rank])
    return clock()


def test_a_rank_is_replaced_in_its_place_and_the_others_stay(four):
    run(four, "here = 1")
    before = everywhere(four, os.getpid)
    four.signal(2, signal.SIGKILL)
    seconds = replace(four, 2)
    after = everywhere(four, os.getpid)
    assert [rank for rank in range(4) if before[rank] != after[rank]] == [2]
    assert everywhere(four, lambda: os.environ["RANK"]) == ["0", "1", "2", "3"]
    assert seconds < 5  # a second on a quiet machine: tests/benchmarks measures it
    run(four, FIRST_ALL_REDUCE)


def test_how_ranks_ended_is_told(four):
    sleep = four.client[1].apply_async(time.sleep, 60)
    time.sleep(0.2)
    four.signal(1, signal.SIGKILL)
    with pytest.raises(Exception, match="Engine 1 died"):
        sleep.get(timeout=300)
    assert four.await_exit_code(1) == -signal.SIGKILL
    replace(four, 1)
    four.client[1].apply_async(os._exit, 7)
    assert eventually(lambda: four.exit_code(1) is not None)
    assert four.await_exit_code(1) == 7
    replace(four, 1)


def test_the_client_can_send_signals_without_a_nanny(four):
    def nap() -> None:
        import time

        time.sleep(600)

    naps = four.client[:].apply_async(nap)
    deadline = time.monotonic() + 60
    while not all(reply.ready() for reply in naps.split()) and time.monotonic() < deadline:
        four.client.send_signal(signal.SIGINT, block=True)  # one that comes before the call is not for it
        time.sleep(0.2)
    for reply in naps.split():
        with pytest.raises(Exception, match="KeyboardInterrupt"):
            reply.get(timeout=300)


def test_all_ranks_can_be_replaced_at_once(four):
    for rank in range(4):
        four.signal(rank, signal.SIGKILL)
    assert eventually(lambda: not four.alive())
    four.replace([0, 1, 2, 3])
    assert four.alive() == [0, 1, 2, 3]


def test_memory_of_ranks_is_shared(four):
    def unique():
        import psutil

        memory = psutil.Process().memory_full_info()
        return memory.uss / memory.rss

    assert max(everywhere(four, unique)) < 0.4


def test_a_killed_server_takes_its_ranks_along():
    ranks = Processes([2])
    pids = everywhere(ranks, os.getpid)
    os.kill(ranks._server.pid, signal.SIGKILL)
    assert eventually(lambda: not any(psutil.pid_exists(pid) for pid in pids))
    assert ranks.exit_code(0) == -9
    home = str(ranks.home)
    ranks.stop()
    assert processes_of(home) == []


def test_a_stopped_server_can_be_ended(four):
    ranks = Processes([1])
    os.kill(ranks._server.pid, signal.SIGSTOP)
    home = str(ranks.home)
    ranks.stop()
    assert eventually(lambda: not processes_of(home))
    assert not Path(home).exists()


def test_stop_ends_what_a_rank_has_started():
    ranks = Processes([1])
    child = ranks.client[0].apply_async(start_a_child).get(timeout=300)
    ranks.stop()
    assert eventually(lambda: not psutil.pid_exists(child))


def start_a_child():
    import sys

    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid


def test_a_dead_rank_takes_along_what_it_has_started(four):
    code = """
import os, subprocess, sys
if os.environ["RANK"] == "3":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    with open(os.environ["CHILD"], "w") as file: file.write(str(child.pid))
    os._exit(1)
"""
    path = Path(four.home, "child")
    four.client[:].execute(code.replace('os.environ["CHILD"]', repr(str(path))), block=False)
    assert eventually(lambda: path.exists() and path.read_text(), 60)
    child = int(path.read_text())
    assert eventually(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie", 60)
    four.replace([3])


def test_what_an_imported_module_prints_is_no_report(monkeypatch, tmp_path):
    (tmp_path / "timeit.py").write_text(f"print('hello')\nexec(open({timeit.__file__!r}).read())\n")
    monkeypatch.chdir(tmp_path)
    ranks = Processes([1])
    try:
        run(ranks, "answer = 7")
    finally:
        ranks.stop()


def test_spawn_behaves_the_same(monkeypatch):
    world = ranklab.start(2, launcher="spawn")
    try:
        assert world.launcher == "spawn"
        assert "imports torch for itself" in repr(world)
        assert everywhere(world.processes, lambda: os.environ["RANK"]) == ["0", "1"]
        os.kill(world.view(1).apply_sync(os.getpid), signal.SIGKILL)
        assert eventually(lambda: world.processes.exit_code(1) is not None)
        assert world.processes.await_exit_code(1) == -signal.SIGKILL
        world.heal()
        assert world.processes.alive() == [0, 1]
    finally:
        world.stop()


def test_a_launcher_that_does_not_exist():
    with pytest.raises(WorldError, match='"fork" or "spawn"'):
        ranklab.start(2, launcher="thread")


@pytest.mark.parametrize("state", [{"threads": 3, "cuda": False}, {"threads": 1, "cuda": True}])
def test_an_unsafe_server_is_not_forked(monkeypatch, state):
    class Unsafe(Server):
        def _hear(self, report):
            super()._hear({"ready": report["ready"] | state} if "ready" in report else report)

    monkeypatch.setattr(processes, "Server", Unsafe)
    ranks = Processes([1])
    try:
        assert ranks.launcher == "spawn"
        assert "not be safe" in ranks.how
        assert everywhere(ranks, lambda: os.environ["RANK"]) == ["0"]
    finally:
        ranks.stop()
