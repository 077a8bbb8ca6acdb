"""Names that resolve wrongly: what torchrun over two hosts does with them, and what mends it."""

import subprocess
import sys
from pathlib import Path

import pytest

import ranklab

ACROSS = str(Path(__file__).parents[2] / "book" / "launching" / "scripts" / "across.py")
INTERFACE = {"GLOO_SOCKET_IFNAME": "eth0"}
pytestmark = pytest.mark.ranks


def launch(lab, timeout=30, **options):
    return ranklab.torchrun(ACROSS, nproc_per_node=[1, 1], hosts=lab, timeout=timeout, show=False, **options)


def assert_met(run):
    assert run.failure is None, run.failure
    assert [output.split(": ")[1] for output in run.outputs] == ["all ranks add up to 1\n"] * 2


@pytest.fixture
def known():
    with ranklab.hosts(2) as lab:
        yield lab


@pytest.fixture
def debian():
    with ranklab.hosts(2, names="127.0.1.1") as lab:
        yield lab


@pytest.fixture
def unknown():
    with ranklab.hosts(2, names="unknown") as lab:
        yield lab


@pytest.mark.parametrize("rdzv", ["static", "c10d"])
def test_real_addresses_need_nothing(known, rdzv):
    assert_met(launch(known, rdzv=rdzv))


def test_static_with_a_loopback_name_meets_and_cannot_connect(debian):
    run = launch(debian, address=debian[0].address)
    assert "connectFullMesh failed" in run.failure.error
    assert "remote=[127.0.1.1]" in run.failure.error
    assert_met(launch(debian, env=INTERFACE, address=debian[0].address))


def test_c10d_with_a_loopback_name_has_no_host_for_the_meeting(debian):
    run = launch(debian, rdzv="c10d", address=debian[0].address, timeout=10)
    assert str(run.failure).startswith("After 10 s")
    # By name, computer1 knows that the endpoint is itself.
    assert_met(launch(debian, rdzv="c10d", env=INTERFACE))


def test_static_without_a_name_uses_loopback(unknown):
    run = launch(unknown, address=unknown[0].address)
    assert "connectFullMesh failed" in run.failure.error
    assert "remote=[127.0.0.1]" in run.failure.error
    assert_met(launch(unknown, address=unknown[0].address, env=INTERFACE))


def test_c10d_without_a_name_ends_at_once(unknown):
    run = launch(unknown, rdzv="c10d", address=unknown[0].address)
    assert "gaierror" in str(run.failure)
    assert run.seconds < 15


def test_c10d_without_a_name_works_where_each_agent_is_told_who_it_is(unknown):
    agents = []
    for node, host in enumerate(unknown):
        command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
        command += ["--rdzv-backend=c10d", f"--rdzv-endpoint={unknown[0].address}:29400", "--rdzv-id=job"]
        command += [f"--local-addr={host.address}", f"--rdzv-conf=is_host={int(node == 0)}", ACROSS]
        exports = [f"{name}={value}" for name, value in INTERFACE.items()]
        agents.append(host.popen(["env", *exports, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
    said = [agent.communicate(timeout=60)[0].decode() for agent in agents]
    assert sorted(line.split(": ")[1] for line in said) == ["all ranks add up to 1\n"] * 2, said


@pytest.mark.parametrize("rdzv", ["static", "c10d"])
def test_a_meeting_place_that_one_side_does_not_know_is_waited_for_in_silence(known, rdzv):
    known[1].names = f"127.0.0.1 localhost\n{known[1].address} computer2\n"
    run = launch(known, rdzv=rdzv, timeout=10)
    assert str(run.failure).startswith("After 10 s")
