"""The fork server: each rank is as a fresh process would be, and nothing is left."""

from __future__ import annotations

import concurrent.futures
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest
from support import eventually, processes_of, stopwatch

import ranklab
from ranklab.engines import choice, processes
from ranklab.engines.forking import Server
from ranklab.engines.processes import Processes
from ranklab.errors import RanklabError, WorldError
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
    return ranks.client[:].apply_async(function, *arguments).get(timeout=60)


def run(ranks: Processes, code: str):
    ranks.client[:].execute(code, block=False).get(timeout=60)


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
        sleep.get(timeout=60)
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
            reply.get(timeout=60)


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
    child = ranks.client[0].apply_async(start_a_child).get(timeout=30)
    ranks.stop()
    assert eventually(lambda: not psutil.pid_exists(child))


def start_a_child():
    import subprocess
    import sys

    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid


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
    _, errors = process.communicate(timeout=60)
    # It was faster than the interrupt, or was interrupted while it ran, or while Python itself was ending.
    assert process.returncode == 0 or "KeyboardInterrupt" in errors or process.returncode == -signal.SIGINT
    assert nothing_left(tmp_path)


def test_no_free_file_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 2, hard))
    try:
        with pytest.raises(RanklabError, match="open files"):
            Processes([2])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


PROGRAM = """
    import os, sys
    import ranklab
    world = ranklab.start(2)
    print(world.view([0, 1]).apply_async(lambda: __import__("os").environ["RANK"]).get(timeout=60))
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
        return [ranks.client[:].apply_async(lambda: os.environ["MASTER_PORT"]).get(timeout=60), str(ranks.home)]
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
        said = list(pool.map(lambda process: process.communicate(timeout=180)[0].strip(), started))
    assert all(process.returncode == 0 for process in started)
    assert len(set(said)) == 8, said


def test_twelve_starts_and_stops_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = psutil.Process()
    once(0)  # what is loaded and cached once
    children = {child.pid for child in mine.children(recursive=True)}
    before = mine.num_fds(), mine.num_threads()
    for number in range(12):  # four times what the limits below let pass
        once(number)
    assert not list(tmp_path.iterdir())
    assert eventually(lambda: {child.pid for child in mine.children(recursive=True)} <= children)
    assert mine.num_fds() <= before[0] + 3
    assert mine.num_threads() <= before[1] + 3


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
