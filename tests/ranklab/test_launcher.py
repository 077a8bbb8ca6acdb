"""What ipyparallel asks of a launcher, asked of ours."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import ipyparallel as ipp
import pytest
from support import eventually, stopwatch

from ranklab.engines.launcher import RankSetLauncher
from ranklab.engines.processes import Processes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ranks are forked on Linux only")
PATIENCE = 300


@pytest.fixture(scope="module")
def two():
    ranks = Processes([2])
    yield ranks
    ranks.stop()


def nap(folder: str) -> None:
    """Say that the engine is inside this call, where SIGINT is not ignored, and stay there."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(30)


def napping(client, folder):
    """Send every engine to sleep, and return when each has said that it is in the call."""
    asleep = Path(tempfile.mkdtemp(dir=folder))
    naps = client[:].apply_async(nap, str(asleep))
    assert eventually(lambda: len(list(asleep.iterdir())) == len(client.ids))
    return naps


def interrupted(naps) -> None:
    for reply in naps:
        with pytest.raises(ipp.RemoteError, match="KeyboardInterrupt"):
            reply.get(timeout=PATIENCE)


def test_a_signal_to_the_set_reaches_every_engine(two, tmp_path):
    naps = napping(two.client, tmp_path).split()
    two._cluster.signal_engines_sync(signal.SIGINT)
    interrupted(naps)


def test_the_client_can_send_signals_without_a_nanny(two, tmp_path):
    naps = napping(two.client, tmp_path).split()
    two.client.send_signal(signal.SIGINT, block=True)
    interrupted(naps)


def test_a_killed_engine_fails_its_requests_at_once_and_can_be_replaced(two, tmp_path):
    naps = napping(two.client, tmp_path).split()
    two.signal(1, signal.SIGKILL)
    clock = stopwatch()
    with pytest.raises(ipp.RemoteError, match="Engine 1 died"):
        naps[1].get(timeout=PATIENCE)
    assert clock() < 1.0
    assert eventually(lambda: two.exit_code(1) == -signal.SIGKILL)
    assert eventually(lambda: two.client.ids == [0])
    two.replace([1])
    assert two.client[1].apply_sync(os.getenv, "RANK") == "1"
    two.client.send_signal(signal.SIGINT, targets=[0], block=True)
    interrupted(naps[:1])


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
