"""What ipyparallel asks of a launcher, asked of ours; modelled on test_cluster.py of ipyparallel's own suite."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ipyparallel as ipp
import psutil
import pytest
from support import stopwatch

from ranklab.engines.fork_launcher import ForkSetLauncher
from ranklab.engines.launcher import RankSetLauncher

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ranks are forked on Linux only")
PATIENCE = 60
ENTRY_POINT = "[ipyparallel.engine_launchers]\nranklab = ranklab.engines.fork_launcher:ForkSetLauncher\n"


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """Make the entry point known, as an installed package does, and give the test a folder of temporary files."""
    info = tmp_path / "site" / "ranklab_tested-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: ranklab-tested\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINT)
    monkeypatch.syspath_prepend(info.parent)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return temporary


@pytest.fixture
def make_cluster(tmp_path):
    """Make clusters that are stopped after the test."""
    clusters = []

    def make(**options):
        options = {"engines": "ranklab", "delay": 0, "log_level": 50, "load_profile": False} | options
        options.setdefault("profile_dir", str(tmp_path / f"profile-{len(clusters)}"))
        cluster = ipp.Cluster(controller_args=["--HeartMonitor.period=100"], **options)
        clusters.append(cluster)
        return cluster

    yield make
    for cluster in clusters:
        cluster.stop_cluster_sync()


def engine_set(cluster):
    return next(iter(cluster.engines.values()))


def environment(*names):
    return [os.environ.get(name) for name in names]


def left_over(before):
    """Return our processes that were not there before, after a moment for the last to go."""
    deadline = time.monotonic() + 5
    while True:
        left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_entry_point_names_the_launcher():
    assert ipp.Cluster(engines="ranklab").engine_launcher_class is ForkSetLauncher


def test_start_gives_every_engine_its_rank_and_stop_leaves_nothing(make_cluster, installed):
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    cluster = make_cluster(n=3)
    client = cluster.start_and_connect_sync()
    assert client.ids == [0, 1, 2]
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")
    told = client[:].apply_sync(environment, *names)
    assert told == [[str(rank), str(rank), "3", "3", "1"] for rank in range(3)]
    ports = client[:].apply_sync(environment, "MASTER_PORT")
    assert len({port for (port,) in ports}) == 1
    client.close()
    cluster.stop_cluster_sync()
    assert cluster.engines == {}
    assert left_over(before) == []
    assert list(installed.iterdir()) == []
    assert not list(Path(cluster.profile_dir, "log").glob("*.log"))


def nap(folder: str) -> None:
    """Say that the engine is inside this call, where SIGINT is not ignored, and stay there."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(30)


def napping(client, folder):
    """Send every engine to sleep, and return when each has said that it is in the call."""
    asleep = Path(tempfile.mkdtemp(dir=folder))
    naps = client[:].apply_async(nap, str(asleep))
    wait_until(lambda: len(list(asleep.iterdir())) == len(client.ids))
    return naps


def interrupted(naps) -> None:
    for reply in naps.split():
        with pytest.raises(ipp.RemoteError, match="KeyboardInterrupt"):
            reply.get(timeout=PATIENCE)


def test_a_signal_to_the_set_reaches_every_engine(make_cluster, tmp_path):
    cluster = make_cluster(n=2)
    client = cluster.start_and_connect_sync()
    naps = napping(client, tmp_path)
    cluster.signal_engines_sync(signal.SIGINT)
    interrupted(naps)
    client.close()


def test_the_client_can_send_signals_without_a_nanny(make_cluster, tmp_path):
    cluster = make_cluster(n=2)
    client = cluster.start_and_connect_sync()
    naps = napping(client, tmp_path)
    client.send_signal(signal.SIGINT, block=True)
    interrupted(naps)
    client.close()


def test_restart_makes_new_processes(make_cluster):
    cluster = make_cluster(n=2)
    client = cluster.start_and_connect_sync()
    before = client[:].apply_sync(os.getpid)
    cluster.restart_engines_sync()
    wait_until(lambda: not set(before) & set(psutil.pids()))
    client.wait_for_engines(2, timeout=PATIENCE)
    wait_until(lambda: len(client.ids) == 2)
    after = client[:].apply_sync(os.getpid)
    assert not set(before) & set(after)
    assert client[:].apply_sync(environment, "RANK") == [["0"], ["1"]]
    client.close()


def test_another_cluster_object_takes_over_from_a_dict(make_cluster, installed, tmp_path):
    cluster = make_cluster(n=2)
    client = cluster.start_and_connect_sync()
    second = ipp.Cluster.from_dict(cluster.to_dict())
    first_set, second_set = engine_set(cluster), engine_set(second)
    assert second.engine_launcher_class is ForkSetLauncher
    assert second_set.n == first_set.n == 2
    assert [entry.pid for entry in second_set.launchers.values()] == client[:].apply_sync(os.getpid)
    naps = napping(client, tmp_path)
    second.signal_engines_sync(signal.SIGINT)
    interrupted(naps)
    client.close()
    second.stop_cluster_sync()
    wait_until(lambda: not psutil.pid_exists(first_set.server_pid) or first_set.server._process.poll() is not None)
    assert list(installed.iterdir()) == []


def test_from_dict_says_where_nothing_runs_any_more(make_cluster):
    from ipyparallel.cluster.launcher import NotRunning

    cluster = make_cluster(n=1)
    asyncio.run(stopped(cluster))
    state = STATE.pop()
    with pytest.raises(NotRunning):
        ForkSetLauncher.from_dict(state)


STATE = []


async def stopped(cluster):
    await cluster.start_cluster()
    STATE.append(engine_set(cluster).to_dict())
    await cluster.stop_cluster()


def test_a_crash_while_waiting_is_told_at_once(make_cluster):
    cluster = make_cluster(n=2)
    cluster.start_controller_sync()
    client = cluster.connect_client_sync()
    cluster.start_engines_sync(2, engine_args=["--IPEngine.no_such_option=1", "--IPEngine.timeout=nonsense"])
    clock = stopwatch()
    with pytest.raises((ipp.EngineError, ipp.TimeoutError)):
        client.wait_for_engines(2, timeout=PATIENCE)
    assert clock() < 20
    client.close()


def test_a_killed_engine_fails_its_requests_at_once_and_can_be_replaced(make_cluster):
    cluster = make_cluster(n=2)
    client = cluster.start_and_connect_sync()
    ranks = engine_set(cluster)
    sleep = client[1].apply_async(time.sleep, 30)
    time.sleep(0.3)
    ranks.signal_rank(1, signal.SIGKILL)
    clock = stopwatch()
    with pytest.raises(ipp.RemoteError, match="Engine 1 died"):
        sleep.get(timeout=PATIENCE)
    assert clock() < 1.0
    wait_until(lambda: ranks.exit_code(1) == -signal.SIGKILL)
    wait_until(lambda: client.ids == [0])
    ranks.start_rank(1)
    wait_until(lambda: client.ids == [0, 1])
    assert client[1].apply_sync(environment, "RANK") == ["1"]
    client.close()


def test_engines_outlive_the_process_that_started_them_as_stock_engines_do(tmp_path, installed):
    program = (
        "import ipyparallel as ipp, sys\n"
        f"cluster = ipp.Cluster(engines='ranklab', n=1, delay=0, log_level=50, profile_dir={str(tmp_path / 'p')!r},"
        "shutdown_atexit=False, load_profile=False, controller_args=['--HeartMonitor.period=100'])\n"
        "cluster.start_cluster_sync(); print(cluster.cluster_file, flush=True)\n"
        "import os; os._exit(0)\n"
    )
    path = os.pathsep.join([str(installed.parent / "site"), *sys.path])
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(installed)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    cluster = ipp.Cluster.from_file(said.stdout.strip(), log_level=50)
    server = psutil.Process(engine_set(cluster).server_pid)
    client = cluster.connect_client_sync()
    client.wait_for_engines(1, timeout=PATIENCE)
    assert client[:].apply_sync(environment, "RANK") == [["0"]]
    client.close()
    cluster.stop_cluster_sync()
    server.wait(PATIENCE)
    assert list(installed.iterdir()) == []


class Told:
    """Stands for the launcher of a rank; its end is told when the test says so."""

    def __init__(self, **traits):
        self.traits, self.callbacks = traits, []

    def on_stop(self, callback):
        self.callbacks.append(callback)

    def start(self):
        return self

    def get_output(self):
        return ""

    def tell(self):
        for callback in self.callbacks:
            callback({"exit_code": -9, "identifier": self.traits["identifier"]})


class ToldSet(RankSetLauncher):
    launcher_class = Told


def test_an_end_that_is_told_late_or_twice_does_not_lose_the_rank_in_its_place(tmp_path):
    ranks = ToldSet(profile_dir=str(tmp_path), environments=[{}, {}])
    ranks.start(2)
    before = ranks.ranks[0]
    now = ranks.start_rank(0)
    before.tell()
    assert ranks.launchers == {"0": now, "1": ranks.ranks[1]}
    now.tell()
    now.tell()
    assert ranks.launchers == {"1": ranks.ranks[1]}
