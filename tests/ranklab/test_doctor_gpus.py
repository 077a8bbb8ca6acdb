"""What the doctor says of GPUs: machines with 0, 1, 2 and 8 of them are played, for none is at hand."""

import dataclasses
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from nvidia_smi_texts import ALL_NVLINK, CUT, PAIRS, TWO_PIX, TWO_SYS

from ranklab import doctor, doctor_gpus
from ranklab.finding import OK, PROBLEM, WARNING
from ranklab.rank import cards
from ranklab.system import leftovers, seen
from ranklab.system.backends import ON_CPUS, ON_GPUS
from ranklab.system.seen import Seen
from ranklab.system.trial import Trial


def listing(count):
    return "".join(f"GPU {number}: NVIDIA H200 (UUID: GPU-{number})\n" for number in range(count))


def good(count, **other):
    """What torch says of GPUs that are as they should be."""
    return Seen("2.13.0+cu130", "13.0", "13.0", "2.28.9", names=("NVIDIA H200",) * count, **other)


@pytest.fixture
def machine(program, monkeypatch, tmp_path):
    """Play a machine: what nvidia-smi prints, and what torch says; returns the findings by name."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(leftovers, "on_gpus", lambda pids: ([], []))

    def play(shown, *, users="", ways="", torch=None, mask=None):
        for name, text in (("list", shown), ("users", users), ("ways", ways)):
            (tmp_path / name).write_text(text)
        program(
            "nvidia-smi",
            f'case "$*" in -L) cat {tmp_path}/list;; *compute-apps*) cat {tmp_path}/users;; '
            f'"topo -m") cat {tmp_path}/ways;; *) exit 9;; esac',
        )
        if mask is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
        monkeypatch.setattr(seen, "look", lambda: torch or good(shown.count("GPU ")))
        return {finding.check: finding for check in doctor_gpus.checks() for finding in check()}

    return play


def test_without_a_driver_nothing_is_started_and_one_line_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("started something"))
    monkeypatch.setattr(leftovers, "on_gpus", lambda _: pytest.fail("looked at all processes"))
    (check,) = doctor_gpus.checks()
    assert check() == [doctor_gpus.NONE]


def test_a_driver_without_gpus_says_why(machine):
    found = machine("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nMore.\n")
    assert list(found) == ["GPUs"] and found["GPUs"].state == OK
    assert "couldn't communicate with the NVIDIA driver" in found["GPUs"].said and "restart" in found["GPUs"].fix


def test_a_driver_that_hangs_is_told(machine, monkeypatch):
    def hang(*_, **__):
        raise subprocess.TimeoutExpired("nvidia-smi", 10)

    machine(listing(1))
    monkeypatch.setattr(doctor_gpus.nvidia_smi, "ask", hang)
    ((finding,),) = [check() for check in doctor_gpus.checks()]
    assert finding.state == WARNING and finding.said == "nvidia-smi does not answer: TimeoutExpired."


def test_one_gpu(machine):
    found = machine(listing(1))
    assert list(found) == ["GPUs", "CUDA"]
    assert found["GPUs"].said == "1 visible, used by 0 processes." and found["GPUs"].state == OK
    assert found["CUDA"].said == (
        "torch was built with CUDA 13.0, the driver knows CUDA 13.0; it computes on each GPU."
    )


@pytest.mark.parametrize(
    ("count", "ways", "said"),
    [
        (2, TWO_PIX, "2 GPUs: they are joined through one PCIe switch (PIX)."),
        (2, TWO_SYS, "2 GPUs: they are joined between processors (SYS)."),
        (8, ALL_NVLINK, "8 GPUs: each pair is joined by 18 NVLinks (NV18)."),
        (2, "", "nvidia-smi does not tell here how the GPUs are joined."),
    ],
    ids=["PIX", "SYS", "NVLink", "untold"],
)
def test_several_gpus(machine, count, ways, said):
    found = machine(listing(count), ways=ways)
    assert list(found) == ["GPUs", "topology", "CUDA", "peer access"]
    assert {finding.state for finding in found.values()} == {OK}
    assert found["topology"].said == said and not found["topology"].fix
    assert found["peer access"].said == f"each of the {count} GPUs reaches the memory of the others."


def test_gpus_that_belong_together_are_named(machine):
    found = machine(listing(4), ways=PAIRS)
    assert "`CUDA_VISIBLE_DEVICES=0,1`" in found["topology"].fix


def test_gpus_that_do_not_reach_each_other(machine):
    found = machine(listing(2), ways=TWO_SYS, torch=good(2, apart=((0, 1),)))
    assert found["peer access"].state == WARNING and "ACS" in found["peer access"].fix
    assert found["peer access"].said == (
        "1 of 1 pair of GPUs does not have it: NCCL goes through the machine's memory there."
    )


def test_parts_of_a_gpu(machine):
    found = machine(CUT, ways=TWO_PIX, torch=good(1))
    assert found["MIG"].state == WARNING and "GPU 0 into 2 parts" in found["MIG"].said
    assert "CUDA_VISIBLE_DEVICES=MIG-" in found["MIG"].fix
    assert found["CUDA"].state == PROBLEM and found["CUDA"].said == "nvidia-smi shows 2 GPUs, and torch sees 1."


def test_one_part_is_chosen(machine):
    found = machine(CUT, mask="MIG-2", torch=good(1))
    assert found["GPUs"].said.startswith("1 visible") and found["CUDA"].state == OK
    assert "topology" not in found and found["visible"].said == "CUDA_VISIBLE_DEVICES shows 1 of 2 GPUs."


@pytest.mark.parametrize(
    ("mask", "state", "said"),
    [
        ("4,5", OK, "shows 2 of 8 GPUs."),
        ("GPU-3", OK, "shows 1 of 8 GPUs."),
        ("", OK, "shows 0 of 8 GPUs."),
        ("-1", OK, "shows 0 of 8 GPUs."),
        ("0,9,1", WARNING, "shows 1 of 8 GPUs; its entry 2 names none, and CUDA reads no further."),
        ("nonsense", WARNING, "shows 0 of 8 GPUs; its entry 1 names none, and CUDA reads no further."),
        ("2,2", WARNING, "names a GPU twice."),
    ],
)
def test_masks(machine, mask, state, said):
    found = machine(listing(8), mask=mask, ways=ALL_NVLINK)
    assert (found["visible"].state, found["visible"].said) == (state, f"CUDA_VISIBLE_DEVICES {said}")
    assert found["visible"].fix or state == OK
    if "shows 0" in said:
        assert list(found) == ["GPUs", "visible"] and found["GPUs"].said.startswith("none visible")
    if mask == "4,5":
        assert found["topology"].said == "2 GPUs: they are joined by 18 NVLinks (NV18)."


@pytest.mark.parametrize(
    ("torch", "said", "fix"),
    [
        (Seen("2.13.0+cpu"), "this torch was built for CPUs alone, and the machine shows GPUs.", "torch with CUDA"),
        (
            Seen("2.13.0+cu130", "13.0", "12.4"),
            "torch was built with CUDA 13.0, and the driver knows CUDA 12.4.",
            "Update the driver, or install a torch that was built with CUDA 12",
        ),
        (
            Seen("2.13.0+cu130", "13.0", ""),
            "torch was built with CUDA 13.0, and the driver does not answer.",
            "docker run --gpus all",
        ),
        (good(1, problem="GPU 0: no kernel image"), "torch cannot compute on GPU 0: no kernel image.", "no code for"),
        (Seen(problem="ImportError: x"), "torch could not be asked: ImportError: x.", "import torch"),
    ],
    ids=["CPU build", "old driver", "no driver", "old GPU", "broken torch"],
)
def test_a_torch_that_cannot_compute_on_gpus(machine, torch, said, fix):
    finding = machine(listing(1), torch=torch)["CUDA"]
    assert (finding.state, finding.said) == (PROBLEM, said)
    assert fix in finding.fix


def test_a_driver_of_an_earlier_minor_version_will_do(machine):
    assert machine(listing(1), torch=Seen("2.13", "13.2", "13.0", names=("H",)))["CUDA"].state == OK


def test_processes_that_hold_gpu_memory(machine, monkeypatch):
    found = machine(listing(1), users="12, 500\n13, 20\n")
    assert (found["GPUs"].state, found["GPUs"].said) == (WARNING, "1 visible, used by 2 processes.")
    gone, alive = [SimpleNamespace(pid=12)], [SimpleNamespace(pid=13)]
    monkeypatch.setattr(leftovers, "on_gpus", lambda pids: (gone, alive) if pids == {12, 13} else None)
    found = machine(listing(1), users="12, 500\n13, 20\n")
    assert "1 rank of your own notebooks" in found["GPUs"].said and "world.stop()" in found["GPUs"].fix
    assert found["GPU leftovers"].said == "1 process of a notebook that has gone holds 500 MB of GPU memory."
    assert found["GPU leftovers"].fix == "ranklab.start() ends them."


def test_leftovers_on_a_gpu_are_found_by_their_number_or_by_what_they_have_open(monkeypatch):
    gone, alive = SimpleNamespace(pid=os.getpid()), SimpleNamespace(pid=7, environ=lambda: {leftovers.HOME: "x"})
    other = SimpleNamespace(pid=8, environ=dict)
    monkeypatch.setattr(leftovers, "processes", lambda: [gone])
    monkeypatch.setattr(leftovers.psutil, "process_iter", lambda: [alive, other])
    assert leftovers.on_gpus({7, 8}) == ([], [alive])
    assert leftovers.on_gpus({os.getpid()}) == ([gone], [])
    with open(os.devnull) as opened:
        monkeypatch.setattr(leftovers, "GPU_FILE", leftovers.re.compile(os.devnull))
        if sys.platform == "linux":
            assert leftovers.on_gpus(set())[0] == [gone], opened


@pytest.mark.parametrize(("count", "size"), [(1, 1), (2, 2), (8, 2)])
def test_the_doctor_tries_a_gpu_each_and_a_shared_one(monkeypatch, count, size):
    started = []
    monkeypatch.setattr(doctor, "visible_gpus", lambda: count)
    monkeypatch.setattr(doctor.subprocess, "Popen", lambda *_, env, **__: started.append(env))
    monkeypatch.setattr(doctor, "finish", lambda ranks, seconds: Trial() if seconds == doctor.GPU_DEADLINE else None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
    own = doctor._talk(ON_GPUS)()
    assert own.check == "nccl" and own.said == f"all_reduce on {size} rank{'s' * (size > 1)} gives the exact numbers."
    assert len(started) == size and all("NCCL_HOSTID" not in env for env in started)
    started.clear()
    shared = doctor._share(ON_GPUS)()
    assert (shared.check, shared.state) == ("nccl, shared", OK)
    assert shared.said == "all_reduce on 2 ranks that share a GPU gives the exact numbers."
    assert [env["NCCL_HOSTID"] for env in started] == ["rank0", "rank1"]
    assert {env["CUDA_VISIBLE_DEVICES"] for env in started} == {"3"}
    assert {(env["NCCL_SOCKET_IFNAME"], env["NCCL_IB_DISABLE"]) for env in started} == {(doctor.LOOPBACK, "1")}


def test_without_a_gpu_none_is_shared_and_gloo_never_is(monkeypatch):
    monkeypatch.setattr(doctor, "visible_gpus", lambda: 0)
    assert doctor._share(ON_GPUS)() == []
    monkeypatch.setattr(doctor, "visible_gpus", lambda: 8)
    assert doctor._share(ON_CPUS)() == []


def test_a_shared_gpu_that_fails_has_a_mend_of_its_own(monkeypatch):
    monkeypatch.setattr(doctor.subprocess, "Popen", lambda *_, **__: None)
    monkeypatch.setattr(doctor, "finish", lambda *_: Trial("CUDA out of memory."))
    finding = doctor._all_reduce(ON_GPUS, 2, shared=True)
    assert finding.state == PROBLEM and finding.fix == ON_GPUS.try_sharing


def test_a_check_of_gpus_that_breaks_is_named():
    def odd(_):
        raise ValueError("x")

    assert doctor._guarded(doctor_gpus.functools.partial(odd, 1)).check == "odd"


def test_what_torch_says_travels_as_a_line(monkeypatch):
    said = Seen("2.13", "13.0", "13.0", "2.28.9", ("H", "H"), ((0, 1),))

    def start(command, stdout, **_):
        assert command[1:] == ["-m", "ranklab.rank.cards"]
        print(f"a warning\n{json.dumps(dataclasses.asdict(said))}", file=stdout)

    monkeypatch.setattr(seen.subprocess, "Popen", start)
    monkeypatch.setattr(seen, "finish", lambda *_: Trial())
    assert seen.look() == said
    monkeypatch.setattr(seen, "finish", lambda *_: Trial("ImportError: no torch."))
    assert seen.look() == Seen(problem="ImportError: no torch")
    monkeypatch.setattr(seen, "finish", lambda *_: Trial("did not finish; the machine is busy.", busy=True))
    assert seen.look() == Seen(problem="did not finish; the machine is busy", busy=True)


def test_a_busy_machine_has_no_broken_torch(machine):
    finding = machine(listing(1), torch=Seen(problem="did not finish; the machine is busy", busy=True))["CUDA"]
    assert (finding.state, finding.said) == (WARNING, "torch did not finish; the machine is busy.")
    assert "top" in finding.fix


def test_what_a_torch_for_cpus_says():
    import torch

    if torch.version.cuda is None:
        assert cards.see() == Seen(torch=torch.__version__)


class Driver:
    """The driver's own library, as far as it is asked."""

    def cuDriverGetVersion(self, version):
        version._obj.value = 13010
        return 0


def no_driver(name):
    raise OSError(f"{name}: cannot open shared object file")


def test_what_a_torch_with_cuda_says(monkeypatch):
    import torch

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(cards.ctypes, "CDLL", lambda name: Driver())
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, 28, 9))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: f"H{number}")
    monkeypatch.setattr(torch.cuda, "can_device_access_peer", lambda a, b: (a, b) != (1, 2))
    monkeypatch.setattr(cards, "_try", lambda number: "GPU 2: no" if number == 2 else "")
    said = cards.see()
    assert said == Seen(str(torch.__version__), "13.0", "13.1", "2.28.9", ("H0", "H1", "H2"), ((1, 2),), "GPU 2: no")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(cards.ctypes, "CDLL", no_driver)
    assert cards.see() == Seen(str(torch.__version__), "13.0", "", "2.28.9")
