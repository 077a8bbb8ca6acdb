"""The doctor: what it finds on this machine, and what it says of broken ones."""

import json
import subprocess
import sys

import pytest
from support import stopwatch

from ranklab import doctor
from ranklab.__main__ import told
from ranklab.doctor import OK, PROBLEM, WARNING, Finding
from ranklab.errors import NoHosts
from ranklab.layout import LOOPBACK
from ranklab.system.backends import ON_CPUS
from ranklab.system.trial import Trial


def test_this_machine_is_ready():
    clock = stopwatch()
    run = subprocess.run([sys.executable, "-m", "ranklab", "doctor", "--json"], capture_output=True, text=True)
    assert clock() < 90
    assert run.returncode == 0, run.stdout
    findings = json.loads(run.stdout)
    assert {"check", "state", "said", "fix"} == set(findings[0])
    said = {entry["check"]: entry["said"] for entry in findings}
    assert {"gloo", "nccl", "programs", "ranks", "memory", "host name", "leftovers"} <= set(said)
    assert "all_reduce on 2 ranks gives the exact numbers" in run.stdout or "the machine is busy" in run.stdout


def test_a_problem_means_that_a_chapter_would_fail(monkeypatch):
    from ranklab import __main__ as program

    monkeypatch.setattr(program, "examine", lambda: [Finding("memory", PROBLEM, "none.", "Buy some.")])
    assert program.main(["doctor"]) == 1
    monkeypatch.setattr(program, "examine", lambda: [Finding("name", WARNING, "odd.", "Change it.")])
    assert program.main(["doctor"]) == 0


def test_a_doctor_that_is_stopped_says_so(monkeypatch, capsys):
    from ranklab import __main__ as program

    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "examine", stop)
    assert program.main(["doctor", "--json"]) == 130
    assert capsys.readouterr() == ("", "Stopped.\n")


def test_every_finding_that_is_not_ok_has_a_mend_in_the_text():
    text = told([Finding("a", OK, "fine."), Finding("bb", PROBLEM, "bad.", "Fix it.")])
    assert text.splitlines()[:3] == ["ok  a   fine.", "!!  bb  bad.", "        → Fix it."]


def test_a_name_that_does_not_resolve(monkeypatch):
    def fail(*_):
        raise OSError("no such name")

    monkeypatch.setattr(doctor.socket, "getaddrinfo", fail)
    finding = doctor._name()
    assert finding.state == WARNING and "/etc/hosts" in finding.fix


def test_hosts_that_this_machine_forbids_are_a_warning_with_the_mend(monkeypatch):
    def forbid(_):
        raise NoHosts("This machine allows no network namespaces (no).", "sudo sysctl something=1")

    monkeypatch.setattr(doctor, "Lab", forbid)
    finding = doctor._hosts()
    assert finding.state == WARNING
    assert finding.said == "This machine allows no network namespaces (no)."
    assert finding.fix == "link= does without hosts. To allow them: sudo sysctl something=1."


def test_too_little_memory(monkeypatch):
    monkeypatch.setattr(doctor, "free_memory_mb", lambda: 300)
    assert doctor._memory().state == PROBLEM


def test_a_small_shared_memory(monkeypatch):
    class Usage:
        total = 64 << 20

    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: Usage)
    assert "--shm-size" in doctor._shared_memory().fix


def test_an_all_reduce_that_does_not_come_back_ends_at_the_deadline(monkeypatch):
    monkeypatch.setattr(doctor, "DEADLINE", 1.0)
    monkeypatch.setattr(doctor, "places", lambda nodes: [place for place in PLACES(nodes) if place.rank == 0])
    finding = doctor._all_reduce(ON_CPUS, 2)
    assert finding == Finding("gloo", PROBLEM, FAILED, "Is a firewall on loopback?")


FAILED = "all_reduce on 2 ranks failed: no answer within 1 s."
BUSY = "did not finish within 60 s; the machine is busy (other programs take 80% of the processors)."


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (lambda: doctor._all_reduce(ON_CPUS, 2), f"all_reduce on 2 ranks {BUSY}"),
        (lambda: doctor._ranks(), f"starting two {BUSY}"),
    ],
    ids=["all_reduce", "ranks"],
)
def test_a_busy_machine_has_no_firewall(monkeypatch, check, said):
    monkeypatch.setattr(doctor.subprocess, "Popen", lambda *_, **__: None)
    monkeypatch.setattr(doctor, "finish", lambda *_: Trial(BUSY, busy=True))
    finding = check()
    assert (finding.state, finding.said) == (WARNING, said)
    assert finding.fix == "Look again when the machine has time; `top` shows what runs."


def test_programs_that_cells_run_are_looked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "lacking", lambda: [])
    assert doctor._programs().state == OK
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = doctor._programs()
    assert finding.state == WARNING and "ping" in finding.said and "cells that ping" in finding.said
    assert finding.fix.startswith("sudo apt install ") and "iputils-ping" in finding.fix
    assert "chromium" not in finding.said  # no cell runs it


PLACES = doctor.places


@pytest.mark.parametrize(("own", "used"), [(None, "timeout:1 attempts:2"), ("timeout:9", "timeout:9")])
def test_a_name_server_that_never_answers_is_not_waited_for(monkeypatch, own, used):
    started = []
    monkeypatch.setattr(doctor.subprocess, "Popen", lambda *_, env, **__: started.append(env))
    monkeypatch.setattr(doctor, "finish", lambda *_: Trial())
    monkeypatch.delenv("RES_OPTIONS", raising=False)
    if own:
        monkeypatch.setenv("RES_OPTIONS", own)
    doctor._all_reduce(ON_CPUS, 2)
    assert [environment["RES_OPTIONS"] for environment in started] == [used] * 2


@pytest.mark.parametrize(
    ("limit", "state", "said"),
    [(-1, OK, "have no limit."), (100, PROBLEM, "at most 100, too few."), (1024, OK, "at most 1024.")],
)
@pytest.mark.parametrize("unlimited", [-1, 2**63 - 1], ids=["Linux", "macOS"])
def test_open_files(monkeypatch, unlimited, limit, state, said):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "RLIM_INFINITY", unlimited)
    limit = unlimited if limit < 0 else limit
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    finding = doctor._files()
    assert (finding.state, finding.said) == (state, said)


@pytest.mark.parametrize(("own", "used"), [(None, LOOPBACK), ("eth7", "eth7")])
def test_the_probe_takes_the_interface_that_the_reader_has_set(monkeypatch, own, used):
    """The chapters take it, too, so a wrong one has to show here."""
    started = []
    monkeypatch.setattr(doctor.subprocess, "Popen", lambda *_, env, **__: started.append(env))
    monkeypatch.setattr(doctor, "finish", lambda *_: Trial("Unable to find address for: eth7"))
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    if own:
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", own)
    finding = doctor._all_reduce(ON_CPUS, 2)
    assert [environment["GLOO_SOCKET_IFNAME"] for environment in started] == [used] * 2
    assert ("GLOO_SOCKET_IFNAME=eth7: unset it" in finding.fix) == bool(own)


def test_a_torch_that_cannot_be_imported_is_to_be_installed_again(monkeypatch):
    monkeypatch.setattr(doctor.subprocess, "Popen", lambda *_, **__: None)
    monkeypatch.setattr(doctor, "finish", lambda *_: Trial("ImportError: libcudart.so.12: cannot open shared object"))
    assert doctor._all_reduce(ON_CPUS, 2).fix.startswith("Install torch again")


def test_a_wrong_number_is_a_problem(monkeypatch):
    monkeypatch.setattr(doctor.subprocess, "Popen", lambda *_, **__: None)
    monkeypatch.setattr(doctor, "finish", lambda *_: Trial("all_reduce of 1 numbers came out wrong."))
    finding = doctor._all_reduce(ON_CPUS, 2)
    assert finding.state == PROBLEM
    assert finding.said == "all_reduce on 2 ranks failed: all_reduce of 1 numbers came out wrong."


def test_a_check_that_breaks_is_a_finding():
    def odd():
        raise ValueError("x")

    assert doctor._guarded(odd) == Finding("odd", WARNING, "could not be checked: ValueError: x")


def test_a_temporary_folder_with_a_long_path(monkeypatch):
    monkeypatch.setattr(doctor.tempfile, "gettempdir", lambda: "/t" * 60)
    assert doctor._temporary().state == PROBLEM
