"""The benchmark of starts on GPUs: what it says without one, how ranks share one, and what it stores."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from rich.console import Console

from ranklab.system import backends
from ranklab.system.backends import ON_GPUS

TESTS = Path(__file__).parents[1]


@pytest.fixture
def gpus(monkeypatch):
    """The benchmark, imported as ``make bench`` does, from the folder of the book."""
    monkeypatch.syspath_prepend(str(TESTS.parent))
    from tests.benchmarks import gpus

    return gpus


@pytest.fixture
def contenders(monkeypatch):
    """The names of the measured programs, read as a script's."""
    monkeypatch.syspath_prepend(str(TESTS / "benchmarks"))
    return runpy.run_path(str(TESTS / "benchmarks" / "gpu_contenders.py"), run_name="gpu_contenders")


def test_without_a_gpu_one_line_says_that_it_is_skipped(gpus, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(gpus, "visible_gpus", lambda: 0)
    monkeypatch.setattr(gpus, "measure", None)
    assert gpus.report(Console(), tmp_path)
    assert capsys.readouterr().out == "NCCL is skipped: this machine shows no NVIDIA GPU.\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count, shared", [(1, True), (2, True), (4, False), (8, False)])
def test_ranks_share_where_there_are_fewer_gpus_and_both_sides_take_turns(gpus, monkeypatch, tmp_path, count, shared):
    asked = []

    def measure(*arguments):
        asked.append(arguments)
        return 8.0 if arguments[0] == "ranklab" else 12.0

    monkeypatch.setattr(gpus, "visible_gpus", lambda: count)
    monkeypatch.setattr(gpus, "measure", measure)
    assert gpus.report(Console(), tmp_path, rounds=2)
    assert asked == [("ranklab", 4, shared), ("torchrun", 4, shared)] * 2
    stored = json.loads((tmp_path / "gpus.json").read_text())
    assert stored == {"gpus": count, "ranks": 4, "seconds": {"ranklab": [8.0, 8.0], "torchrun": [12.0, 12.0]}}


def test_a_slower_start_breaks_the_promise(gpus, monkeypatch, tmp_path):
    monkeypatch.setattr(gpus, "visible_gpus", lambda: 1)
    monkeypatch.setattr(gpus, "measure", lambda name, *_: 13.0 if name == "ranklab" else 12.0)
    assert not gpus.report(Console(), tmp_path, rounds=1)


def test_torchruns_ranks_share_a_gpu_as_ranklabs_do(contenders):
    ours = backends.sharing(ON_GPUS.name, 3) | {ON_GPUS.interface: "lo"}
    del ours[backends.SHARED]
    assert contenders["share"]("3") == ours


def test_the_contenders_are_started_alike(gpus, contenders):
    assert gpus.command("ranklab", 4) == [sys.executable, str(gpus.PROGRAM), "ranklab", "4"]
    assert gpus.command("torchrun", 4)[1:] == [
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"),
        *(str(gpus.PROGRAM), "torchrun", "4"),
    ]
    assert contenders["SHARED"] == gpus.SHARED
    compile(contenders["ALL_REDUCE"], "cell", "exec")
