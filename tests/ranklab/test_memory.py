"""What control groups say of memory, in both versions; the files are played, a real limit is in tests/faults."""

from dataclasses import replace

import psutil
import pytest

from ranklab.system import memory


@pytest.fixture(params=[1, 2])
def group(request, tmp_path, monkeypatch):
    """The control group two levels down that this process plays to be in, with its version."""
    version = replace(memory.VERSIONS[request.param], root=tmp_path)
    own = tmp_path / "user" / "reader"
    own.mkdir(parents=True)
    monkeypatch.setattr(memory, "_groups", lambda pid: [(version, own)])
    monkeypatch.setattr(memory, "VERSIONS", {request.param: version})
    return version, own


def limit(group, folder, megabytes, used=0, cache=0):
    version, _ = group
    (folder / version.limit).write_text(f"{megabytes << 20}\n")
    (folder / version.used).write_text(f"{used << 20}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{version.cache} {cache << 20}\n")


def test_the_tightest_limit_counts_wherever_it_stands(group):
    _, own = group
    limit(group, own, 64, used=50, cache=10)
    assert memory.free_memory_mb() == 24
    limit(group, own.parent, 32, used=20)
    assert memory.free_memory_mb() == 12
    limit(group, own.parent.parent, 10, used=20)
    assert memory.free_memory_mb() == 0


def test_without_a_limit_the_machine_counts(group):
    version, own = group
    (own / version.limit).write_text("max\n")
    (own / version.used).write_text("5\n")
    assert abs(memory.free_memory_mb() - (psutil.virtual_memory().available >> 20)) < 500


def test_a_kill_is_told_with_the_limit_that_it_met(group):
    version, own = group
    counter = own / version.events
    counter.write_text("low 0\noom_kill 3\n")
    limit(group, own, 256)
    before = memory.kills([1, 2])
    assert before[counter] == 3
    assert memory.shortage(before) == ""
    counter.write_text("low 0\noom_kill 4\n")
    assert memory.shortage(before) == "it reached its memory limit of 256 MB."
    (own / version.limit).write_text("9223372036854771712\n")
    assert memory.shortage(before) == "the machine was short of memory, and the system killed it."


def test_nothing_is_known_of_a_process_that_has_ended():
    assert set(memory.kills([2**22 + 1])) <= {memory.Path("/proc/vmstat")}
