"""One record a backend: nothing else names one, and another one is another record."""

import json
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from ranklab import doctor
from ranklab.engines import devices
from ranklab.hangs import deaths, diagnosis, mismatch, raised
from ranklab.outcome import RankOutcome
from ranklab.rank import cut, recorder
from ranklab.state import Collective, RankState
from ranklab.system import backends
from ranklab.system.backends import BACKENDS, ON_CPUS, ON_GPUS, Backend


def test_a_rank_is_told_its_backend_and_does_not_see_what_it_shall_not_use(monkeypatch):
    for name in ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "GLOO_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)
    assert backends.environment("gloo") == {"RANKLAB_BACKEND": "gloo", "CUDA_VISIBLE_DEVICES": ""}
    assert backends.environment("nccl") == {"RANKLAB_BACKEND": "nccl"}
    assert backends.defaults() == {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}
    monkeypatch.setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
    assert backends.defaults() == {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
    assert backends.interfaces("lo") == {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}


def test_the_records_are_torchs_own():
    assert {backend.name for backend in BACKENDS} <= set(dist.Backend.backend_list)
    for backend in BACKENDS:
        assert dist.get_default_backend_for_device(backend.device) == backend.name
    assert dist.distributed_c10d.default_pg_timeout.total_seconds() == ON_CPUS.timeout
    assert hasattr(torch._C._distributed_c10d, ON_CPUS.recorder)


def test_the_backends_of_a_group():
    assert backends.of_group("cpu:gloo,cuda:nccl") == [ON_CPUS, ON_GPUS]
    assert backends.of_group("cpu:gloo,cuda:gloo") == [ON_CPUS]
    assert backends.of_group("gloo") == [ON_CPUS]
    assert backends.of_group("cpu:fake") == []
    assert backends.named("fake").title == "fake"


def disagreeing(backend: str) -> dict[int, RankState]:
    return {
        rank: RankState(
            groups={"0": [0, 1]},
            collectives=[Collective("0", 1, "all_reduce", [[4 + rank]], "float32", done=False, backend=backend)],
        )
        for rank in range(2)
    }


@pytest.mark.parametrize(("backend", "title"), [("gloo", "gloo"), ("nccl", "NCCL"), ("", "torch")])
def test_a_report_names_the_backend_that_the_ranks_used(backend, title):
    assert f"and {title} does not compare them" in mismatch.find(disagreeing(backend)).cause


def test_a_sum_of_different_lengths_is_called_wrong_where_it_can_come_back():
    assert mismatch.find(disagreeing("nccl")).cause.endswith("without an error, with wrong numbers in its tensor.")
    assert mismatch.find(disagreeing("gloo")).cause.endswith("does not compare them.")


@pytest.fixture
def new_backend(monkeypatch):
    """Another backend, known from its record alone."""
    record = Backend(
        name="xccl",
        title="XCCL",
        device="xpu",
        defaults={"XCCL_QUIET": "1"},
        interface="XCCL_IFNAME",
        aborts=True,
        recorder="_dump_xccl_trace_json",
        lost="the peer is no more",
        too_much=r"(\d+) bytes into (\d+)",
        source=r"\S*/xccl/\S* ?",
        try_next="Try `XCCL_DEBUG=1`.",
    )
    for module in (backends, recorder, doctor):
        monkeypatch.setattr(module, "BACKENDS", (*BACKENDS, record))
    return record


def test_another_backend_is_another_record(new_backend, monkeypatch):
    assert backends.defaults()["XCCL_QUIET"] == "1" and backends.interfaces("lo")["XCCL_IFNAME"] == "lo"
    assert diagnosis.mismatch.find(disagreeing("xccl")).cause.endswith("and XCCL does not compare them.")
    assert backends.anonymous("/home/me/xccl/a.cc failed") == "[XCCL] failed"  # bookkit: planted
    errors = [
        RankOutcome(0, state="raised", error="RuntimeError: the peer is no more", traceback=["line 1:  f()", "E"]),
        RankOutcome(1, state="raised", error="ValueError: x"),
    ]
    raised.mark_consequences(errors, [])
    assert [entry.state for entry in errors] == ["lost", "raised"]
    dead = RankOutcome(0, state="died", exit_code=-6, last_words="9 bytes into 4")
    assert "sent it 9 bytes where it expected 4" in deaths.why(dead, [dead])[0]
    assert deaths.why(dead, [dead])[0].endswith("and XCCL ends the process then.")


@pytest.mark.parametrize("gpus", [[], ["a GPU"] * 2], ids=["no GPU", "a GPU for each"])
def test_another_backend_for_cpus_is_another_record_and_nothing_else(monkeypatch, gpus):
    for module in (backends, devices):
        monkeypatch.setattr(module, "BACKENDS", (*BACKENDS, Backend(name="ucc", title="UCC")))
    devices.check_backend("ucc")
    assert devices.devices_for([2], "ucc", gpus) == (devices.Devices("ucc", [{"RANKLAB_BACKEND": "ucc"}] * 2), "")


def test_the_recorder_of_another_backend_is_read_beside_the_others(new_backend, monkeypatch):
    def dump(*numbers):
        return lambda **_: json.dumps({"entries": [{"number": number} for number in numbers]})

    core = SimpleNamespace(_dump_fr_trace_json=dump(1, 2), _dump_xccl_trace_json=dump(3))
    monkeypatch.setitem(recorder.sys.modules, "torch._C._distributed_c10d", core)
    assert [entry["number"] for entry in recorder._entries()] == [1, 2, 3]


def test_groups_of_a_backend_that_needs_it_are_aborted(new_backend, monkeypatch):
    aborted = []
    world = SimpleNamespace(pg_backend_config={})
    state = SimpleNamespace(_world=world, _abort_process_group=lambda: aborted.append(1))
    torch_distributed = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, distributed_c10d=state)
    monkeypatch.setitem(cut.sys.modules, "torch.distributed", torch_distributed)
    for config, count in (("cpu:gloo", 0), ("cpu:gloo,xpu:xccl", 1)):
        world.pg_backend_config = {"group": config}
        cut._abort_groups()
        assert len(aborted) == count


def test_the_doctor_tries_every_backend(new_backend, monkeypatch):
    tried = []
    monkeypatch.setattr(doctor, "visible_gpus", lambda: 1)
    monkeypatch.setattr(doctor, "_all_reduce", lambda backend, size: tried.append((backend.name, size)))
    for backend in doctor.BACKENDS:
        doctor._talk(backend)()
    assert tried == [("gloo", 2), ("nccl", 1), ("xccl", 1)]
    monkeypatch.setattr(doctor, "visible_gpus", lambda: 0)
    assert doctor._talk(ON_GPUS)().said == "no GPU, so not tried."
