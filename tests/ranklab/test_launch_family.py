"""Which processes of a launch are strays: started by a rank, and waiting for a store that nobody serves."""

import os
import socket
import subprocess
import sys

import pytest
from launches import program

from ranklab.launch.family import SERVED, family, strays

ENDS = "import sys; print('ready', flush=True); sys.stdin.read()"
STARTS = """
import multiprocessing, os, sys, time
{before}
if __name__ == "__main__":
    process = multiprocessing.get_context("{method}").Process(target=time.sleep, args=(600,), daemon=True)
    process.start()
    {ends}
"""
LOADS = """
import sys
from torch.utils.data import DataLoader
batches = iter(DataLoader(range(8), num_workers=2, multiprocessing_context="fork"))
next(batches)
{ends}
"""
MEETS = "import socket; there = socket.create_connection(('127.0.0.1', int(os.environ['MASTER_PORT'])))"
KNOWS_BETTER = "os.environ.pop('TORCHELASTIC_USE_AGENT_STORE', None)"


@pytest.fixture
def store():
    """What listens where torchrun's store would; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def strays_of(tmp_path, store):
    """Run a program as rank 2 of torchrun and return its strays once it is ready."""
    rank = None

    def look(text):
        nonlocal rank
        name, value = SERVED
        environment = os.environ | {name: value, "RANK": "2", "MASTER_PORT": str(store)}
        command = [sys.executable, program(tmp_path, text)]
        rank = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert rank.stdout.readline() == "ready\n"
        assert len(family([rank.pid])) > 1  # it has started something
        return strays([rank.pid])

    yield look
    with rank:
        os.killpg(rank.pid, 9)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_what_multiprocessing_starts_is_a_stray(strays_of, method):
    assert strays_of(STARTS.format(method=method, before="", ends=ENDS)) == {2: 1}


def test_what_helps_a_rank_that_has_met_is_none(strays_of):
    before = f"if __name__ == '__main__':\n    {MEETS}"
    assert strays_of(STARTS.format(method="fork", before=before, ends=ENDS)) == {}


def test_a_program_that_knows_better_has_none(strays_of):
    assert strays_of(STARTS.format(method="spawn", before=KNOWS_BETTER, ends=ENDS)) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the name of a worker")
def test_the_workers_of_a_data_loader_are_none(strays_of):
    assert strays_of(LOADS.format(ends=ENDS)) == {}


def test_another_program_is_none(strays_of):
    assert strays_of(f"import subprocess\nsubprocess.Popen(['sleep', '600'])\n{ENDS}") == {}
