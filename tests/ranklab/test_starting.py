"""Starting ranks: what takes too long, what fails half-way, and Pythons that lack a function."""

from __future__ import annotations

import os
import signal
import socket
import sys

import psutil
import pytest
import torch.distributed
from support import eventually

import ranklab
from ranklab.engines import greeting, processes
from ranklab.engines.controllers import controller_runs
from ranklab.engines.processes import Processes
from ranklab.errors import RanklabError
from ranklab.rank import meeting


def test_ranks_answer_and_are_watched_without_waitid(monkeypatch):
    """macOS has os.waitid in Python 3.13 and later only."""
    monkeypatch.delattr(os, "waitid")
    with ranklab.start(2, launcher="spawn") as world:
        world.push(x=1)
        assert world.pull("x") == [1, 1]
        controller = world.processes._cluster.controller.pid
        os.kill(controller, signal.SIGKILL)
        assert eventually(lambda: not controller_runs(world.processes._cluster))
        assert "controller" in world.processes.lost()


def test_a_view_of_ranks_that_were_lost_says_so_until_the_next_cell_starts_them():
    with ranklab.start(1) as world:
        controller = world.processes._cluster.controller.pid
        fault = f"import os, signal, time; os.kill({controller}, signal.SIGKILL); time.sleep(600)"
        assert "was killed" in world._call(exec, fault)[1]
        with pytest.raises(RanklabError, match=r"was killed\. world\.restart\(\) starts new ones\."):
            world.view(0)
        assert world._call(os.getpid)[1] == ""
        assert len(world.view(0)) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ranks are forked on Linux only")
def test_an_import_of_torch_that_takes_too_long_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("import time; time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.setattr(processes, "START_TIMEOUT", 1.0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(RanklabError, match=r"Importing torch has taken more than 1 s\. Is the environment"):
        Processes([1])
    assert not list(tmp_path.glob("ranklab-*"))
    assert set(psutil.Process().children(recursive=True)) <= before


def refuse_to_greet() -> int:
    raise OSError(98, "Address already in use")


def test_a_rank_that_cannot_prepare_is_told(tmp_path, monkeypatch):
    refuse_to_greet.__module__ = "__main__"  # sent by value
    monkeypatch.setattr(greeting, "greet", refuse_to_greet)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(RanklabError, match=r"rank [01] could not prepare: OSError: .*Address already in use"):
        Processes([2])
    assert not list(tmp_path.glob("ranklab-*"))


def greet_again() -> int:
    import torch.distributed  # noqa: F401  a rank that has torch opens a store

    from ranklab.rank.errands import greet

    return greet()


def test_a_rank_may_be_greeted_twice():
    """The first question may only have been slow, where it seemed lost."""
    greet_again.__module__ = "__main__"
    with ranklab.start(2) as world:
        assert world._call(greet_again) == ([0, 1], "")


@pytest.mark.parametrize("closed_by_torch", [False, True])
def test_a_store_that_cannot_open_leaves_no_listener(monkeypatch, closed_by_torch):
    def fail(*_, master_listen_fd, **__):
        if closed_by_torch:
            os.close(master_listen_fd)
        raise RuntimeError("no store")

    monkeypatch.setattr(torch.distributed, "TCPStore", fail)
    monkeypatch.setenv("WORLD_SIZE", "1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(RuntimeError, match="no store"):
        meeting.serve_store("127.0.0.1", port)
    with socket.socket() as knock:
        assert knock.connect_ex(("127.0.0.1", port)) != 0
