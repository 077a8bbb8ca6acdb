"""Ranks that ipyparallel's own launchers start: the launcher's number is the rank, the hosts make the nodes."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from elsewhere import asked
from support import eventually

import ranklab
from ranklab.engines.elsewhere import Elsewhere
from ranklab.errors import RanklabError, WorldError
from ranklab.layout import LOOPBACK
from ranklab.programs import PROGRAMS, find, missing
from ranklab.rank.errands import free_port, take_place, where_am_i
from ranklab.rank.meeting import serve_store
from ranklab.system.foreign import read_places, read_rank

SSHD = find(next(program for program in PROGRAMS if program.name == "sshd"))


@pytest.mark.parametrize(
    ("launcher", "environment", "rank"),
    [
        ("slurm", {"SLURM_PROCID": "3"}, 3),
        ("mpi", {"OMPI_COMM_WORLD_RANK": "2"}, 2),
        ("mpi", {"PMI_RANK": "1"}, 1),
        ("mpi", {"SLURM_PROCID": "0", "OMPI_COMM_WORLD_RANK": "2"}, 2),
        ("ssh", {"RANKLAB_SSH_RANK": "1", "SLURM_PROCID": "0"}, 1),
        ("slurm", {"SLURM_PROCID": ""}, None),
        ("mpi", {}, None),
    ],
)
def test_the_rank_is_what_the_launcher_says(launcher, environment, rank):
    assert read_rank(environment, launcher) == rank


def test_places_follow_the_hosts_also_where_ranks_are_dealt_out_in_turn():
    block = [(p.node_rank, p.local_rank, p.local_world_size) for p in read_places(["a", "a", "b"])]
    assert block == [(0, 0, 2), (0, 1, 2), (1, 0, 1)]
    cyclic = [(p.node_rank, p.local_rank) for p in read_places(["b", "a", "b", "a"])]
    assert cyclic == [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"engines": "teleport"}, 'engines is "slurm", "ssh" or "mpi"'),
        ({"engines": "ssh"}, 'engines="ssh" and hosts go together'),
        ({"engines": "mpi", "hosts": {"a": 1}}, 'engines="ssh" and hosts go together'),
        ({"hosts": {"a": 1}}, "start() has no 'hosts' without engines="),
        ({"engines": "ssh", "hosts": ["a", "b"]}, 'hosts is a dictionary, for example hosts={"computer1": 2'),
        ({"engines": "mpi", "options": ["-v"]}, 'options is a dictionary, for example options={"queue": "debug"}'),
        ({"engines": "mpi", "queue": "x"}, "start() has no 'queue': the launcher is told in options={\"queue\": …}"),
        ({"engines": "ssh", "hosts": {"a": "two"}}, "The number of ranks is a whole number"),
    ],
)
def test_a_bad_request_gets_one_sentence(arguments, sentence):
    with pytest.raises(WorldError) as caught:
        ranklab.start(**({"size": 2} | arguments))
    assert sentence in str(caught.value)


@pytest.mark.skipif(shutil.which("mpiexec") is None, reason="mpiexec is not installed (Debian: openmpi-bin)")
@pytest.mark.parametrize("address", ["", "127.0.0.1"], ids=["plain", "encrypted"])
def test_mpi(monkeypatch, address):
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    world = ranklab.start(3, engines="mpi", address=address, options={"mpi_args": ["--oversubscribe"]})
    assert bool(world.processes.client.curve_serverkey) == bool(address)
    asked(world, "OMPI_COMM_WORLD_RANK")


@pytest.mark.skipif(shutil.which("mpiexec") is None, reason="mpiexec is not installed (Debian: openmpi-bin)")
def test_a_launcher_that_fails_is_told():
    with pytest.raises(RanklabError, match="mpi did not bring up 2 ranks"):
        ranklab.start(2, engines="mpi", options={"mpi_args": ["--no-such-option"]})


MPIEXEC = """
while [ "$1" != "${1#-}" ]; do
    [ "$1" = -n ] && { count=$2; shift; }
    shift
done
rank=0
while [ $rank -lt $count ]; do
    OMPI_COMM_WORLD_RANK=$rank "$@" &
    rank=$((rank + 1))
done
wait
"""


def told_by_ranklab() -> dict[str, str]:
    import os

    names = (
        "RANKLAB_BACKEND",
        "CUDA_VISIBLE_DEVICES",
        "TORCH_FR_BUFFER_SIZE",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "RES_OPTIONS",
    )
    return {name: os.environ[name] for name in names if name in os.environ}


told_by_ranklab.__module__ = "__main__"


@pytest.mark.parametrize("gpus", [["GPU-a"], ["GPU-a", "GPU-b"]], ids=["too few", "enough"])
def test_ranks_get_gpus_by_the_rules_of_ranks_started_here(monkeypatch, program, gpus_on_this_machine, gpus):
    program("mpiexec", MPIEXEC)
    gpus_on_this_machine(*gpus)
    for name in ("CUDA_VISIBLE_DEVICES", "TORCH_FR_BUFFER_SIZE", "RES_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")  # the reader's own stays
    backend = {1: "gloo", 2: "nccl"}[len(gpus)]
    with ranklab.start(2, engines="mpi") as world:
        told, problem = world._call(told_by_ranklab)
        assert world.backend == backend
        assert list(world.processes.home.glob("owner"))
    assert problem == ""
    assert told == 2 * [
        ({"CUDA_VISIBLE_DEVICES": ""} if backend == "gloo" else {})
        | {
            "RANKLAB_BACKEND": backend,
            "TORCH_FR_BUFFER_SIZE": "256",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
            "RES_OPTIONS": "timeout:1 attempts:2",
        }
    ]


@pytest.mark.parametrize("serve", ["torch's own store", "ranklab's store"])
def test_the_port_of_rank_0_is_held_until_another_is_asked_for(monkeypatch, serve):
    from torch.distributed import TCPStore

    monkeypatch.setenv("WORLD_SIZE", "1")
    host, port = free_port("")
    with socket.socket() as thief, pytest.raises(OSError):
        thief.bind((host, port))
    store = TCPStore(host, port, 1, True) if serve == "torch's own store" else serve_store(host, port)
    store.set("x", "1")
    del store
    assert free_port("")[1] != port
    with socket.socket() as anyone:
        anyone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # torch's connection may still close
        anyone.bind((host, port))
        anyone.listen()


@pytest.fixture
def ssh_server(tmp_path):
    """An ssh server of our own on the loopback interface; yields options for ipyparallel's launcher."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lines = [
        *(f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {tmp_path / 'host'}", "StrictModes no"),
        *(f"AuthorizedKeysFile {tmp_path / 'user.pub'}", "PermitRootLogin yes", f"PidFile {tmp_path / 'pid'}"),
        *("UsePAM no", "PasswordAuthentication no", "Subsystem sftp internal-sftp"),
    ]
    (tmp_path / "config").write_text("\n".join(lines))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-f", tmp_path / "config"])
    options = [
        *("-i", str(tmp_path / "user"), "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"),
        *("-o", f"UserKnownHostsFile={tmp_path / 'known'}", "-o", f"Port={port}"),
    ]
    greet = ["ssh", *options, "localhost", "true"]
    assert eventually(lambda: subprocess.run(greet, stderr=subprocess.DEVNULL).returncode == 0), "the server is silent"
    yield {"ssh_args": options, "scp_args": options, "remote_python": sys.executable, "user": getpass.getuser()}
    server.terminate()
    server.wait(300)


@pytest.mark.skipif(not SSHD, reason=missing("sshd"))
def test_ssh(ssh_server):
    # One computer under two names: the ranks count as one node, because they are.
    asked(ranklab.start(engines="ssh", hosts={"localhost": 2, "127.0.0.1": 1}, options=ssh_server), "RANKLAB_SSH_RANK")


class Told:
    """What ipyparallel's client does for :class:`Elsewhere` while it lays out ranks, without ranks."""

    def __init__(self, hosts, gpus):
        self.hosts, self.gpus, self.environments = hosts, gpus, {}

    def __getitem__(self, ranks):
        return SimpleNamespace(apply_sync=lambda function, *given: self.answer(ranks, function, *given))

    def answer(self, ranks, function, *given):
        if function is where_am_i:
            return [(self.hosts[rank], self.gpus) for rank in ranks]
        if function is take_place:
            self.environments[ranks] = {**given[1], **given[0]}
            return None
        return "127.0.0.1", 1


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@pytest.mark.parametrize("engines", ["slurm", "ssh", "mpi"])
@pytest.mark.parametrize("hosts", [["a", "a", "b"], ["a", "a", "a"]], ids=["two computers", "one computer"])
def test_only_ranks_of_one_computer_are_kept_on_loopback(monkeypatch, hosts, engines, backend):
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)
    world = Elsewhere.__new__(Elsewhere)
    world._asked, world._address, world.launcher = backend, "", engines
    world.size, world._client = 3, Told(hosts, ["GPU-a", "GPU-b", "GPU-c"])
    world._lay_out()
    assert world.backend == backend
    together = {"GLOO_SOCKET_IFNAME": LOOPBACK, "NCCL_SOCKET_IFNAME": LOOPBACK}
    for environment in world._client.environments.values():
        told = {name: value for name, value in environment.items() if name.endswith("_SOCKET_IFNAME")}
        assert told == (together if len(set(hosts)) == 1 else {})
        assert environment["RANKLAB_BACKEND"] == backend
        assert not {"NCCL_HOSTID", "NCCL_IB_DISABLE", "RANKLAB_SHARED"} & environment.keys()  # real computers tell
