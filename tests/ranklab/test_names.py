"""Names that resolve wrongly: what torchrun over two hosts does with them, and what fixes it."""

import subprocess
import sys
from pathlib import Path

import pytest

import ranklab

ACROSS = str(Path(__file__).parents[2] / "book" / "launching" / "scripts" / "across.py")
INTERFACE = {"GLOO_SOCKET_IFNAME": "eth0"}


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


def test_real_addresses_need_nothing(known):
    """With c10d; without it, the chapter *two-computers* does the same."""
    assert_met(launch(known, rdzv="c10d"))


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


def test_c10d_without_a_name_ends_before_its_deadline(unknown):
    run = launch(unknown, rdzv="c10d", address=unknown[0].address)
    assert "gaierror" in str(run.failure)


def test_c10d_works_where_each_agent_is_told_who_it_is(unknown):
    assert sorted(told_who_it_is(unknown)) == ["all ranks add up to 1\n"] * 2


def told_who_it_is(lab):
    """Run across.py under two agents that get address and part in the meeting; return what the ranks said."""
    agents = []
    for node, host in enumerate(lab):
        command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
        command += ["--rdzv-backend=c10d", f"--rdzv-endpoint={lab[0].address}:29400", "--rdzv-id=job"]
        command += [f"--local-addr={host.address}", f"--rdzv-conf=is_host={int(node == 0)}", ACROSS]
        exports = [f"{name}={value}" for name, value in INTERFACE.items()]
        agents.append(host.popen(["env", *exports, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
    return [agent.communicate(timeout=300)[0].decode().partition(": ")[2] for agent in agents]


@pytest.mark.parametrize("rdzv", ["static", "c10d"])
def test_a_meeting_place_that_one_side_does_not_know_is_told_on_that_side(known, rdzv):
    known[1].names = f"127.0.0.1 localhost\n{known[1].address} computer2\n"
    run = launch(known, rdzv=rdzv, timeout=10)
    assert str(run.failure).startswith("After 10 s")
    assert "addresses of (computer1" not in run.logs[0]
    assert "cannot be retrieved" in run.logs[1]


def test_a_cut_cable_is_told_on_the_side_that_is_missing(known):
    known[1].cut()
    run = launch(known, rdzv_conf="timeout=5")
    assert "1/2 clients joined" in run.logs[0]
    assert "No route to host" in run.logs[1]
