"""What the choice of a backend adds to a torchrun and its ranks; the GPUs are played by a fake nvidia-smi."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from launches import program as written

import ranklab
from ranklab.errors import RanklabError, WorldError
from ranklab.launch import devices
from ranklab.launch.agents import environment_for
from ranklab.launch.commandline import Launch
from ranklab.launch.devices import choose_launch_devices, python_for, rank_script

GLOO = {"RANKLAB_BACKEND": "gloo", "CUDA_VISIBLE_DEVICES": ""}
NCCL = {"RANKLAB_BACKEND": "nccl"}
ADDED = "Added to the environment of each rank: "
HOST = SimpleNamespace(name="computer1", interface="eth0")
COMPUTER = SimpleNamespace(name="a-real-computer")
SHOW = """
import json, os
names = ("RANK", "CUDA_VISIBLE_DEVICES", "PYTHON_EXEC", "RANKLAB_BACKEND", "RANKLAB_SHARED")
told = {name: value for name, value in os.environ.items() if name in names or name.startswith("NCCL_")}
print(json.dumps(told, sort_keys=True))
"""


def shared(rank):
    return NCCL | {"RANKLAB_SHARED": "1", "NCCL_HOSTID": f"rank{rank}", "NCCL_IB_DISABLE": "1"}


def over(interface):
    return {"NCCL_SOCKET_IFNAME": interface}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("CUDA_VISIBLE_DEVICES", "PYTHON_EXEC", "NCCL_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def chosen(gpus_on_this_machine):
    """What a launch on a machine with so many GPUs gets."""

    def choose(gpus, nodes, asked, hosts=None, extra=None, **launch):
        gpus_on_this_machine(*(f"GPU-{number}" for number in range(gpus)))
        return choose_launch_devices(Launch("x.py", nodes=nodes, **launch), hosts, asked, extra or {})

    return choose


@pytest.mark.parametrize("nodes", [(1,), (4,), (2, 1)])
def test_a_machine_without_a_gpu_is_left_to_torchrun(chosen, nodes):
    assert chosen(0, nodes, None) == ("", [{}] * len(nodes), ())
    assert chosen(0, nodes, "gloo").nodes == [GLOO] * len(nodes)


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_gloo_hides_every_gpu_and_says_so(chosen, gpus):
    choice = chosen(gpus, (4,), "gloo")
    assert choice == ("", [GLOO], ())
    assert choice.note == ADDED + "CUDA_VISIBLE_DEVICES=, RANKLAB_BACKEND=gloo."


def test_by_default_too_few_gpus_are_hidden_and_enough_are_left_as_they_are(chosen):
    choice = chosen(2, (4,), None)
    assert choice.nodes == [GLOO] and choice.ranks == ()
    assert choice.told == (
        "2 GPUs are fewer than 4 ranks: the ranks use the CPU and gloo, and see no GPU; "
        'backend="nccl" lets ranks share a GPU.'
    )
    assert chosen(8, (4,), None) == ("", [{}], ())


def test_a_gpu_each_needs_nothing_of_its_own(chosen):
    assert chosen(8, (4,), "nccl") == ("", [NCCL], ())


@pytest.mark.parametrize("asked", [None, "nccl"])
def test_nodes_on_one_machine_have_gpus_of_their_own(chosen, asked):
    choice = chosen(8, (2, 1), asked)
    node = NCCL | {"NCCL_IB_DISABLE": "1", **over("lo")}
    assert choice.told == "" and choice.ranks == ()
    assert choice.nodes == [
        node | {"NCCL_HOSTID": "node0", "CUDA_VISIBLE_DEVICES": "GPU-0,GPU-1"},
        node | {"NCCL_HOSTID": "node1", "CUDA_VISIBLE_DEVICES": "GPU-2"},
    ]
    assert choice.note == ADDED + (
        "CUDA_VISIBLE_DEVICES (each node its own), NCCL_HOSTID (each node its own), NCCL_IB_DISABLE=1, "
        "NCCL_SOCKET_IFNAME=lo, RANKLAB_BACKEND=nccl."
    )


def test_ranks_that_share_have_variables_each_of_its_own_and_the_same_sentence_as_in_start(chosen):
    choice = chosen(1, (3,), "nccl")
    assert choice.told == (
        '3 ranks share 1 GPU: right for learning, not for speed. backend="gloo" keeps them on the CPU.'
    )
    assert choice.nodes == [over("lo")] and choice.ranks == [shared(0), shared(1), shared(2)]
    assert choice.note == ADDED + (
        "NCCL_HOSTID=rank$RANK, NCCL_IB_DISABLE=1, NCCL_SOCKET_IFNAME=lo, RANKLAB_BACKEND=nccl, RANKLAB_SHARED=1."
    )


@pytest.mark.parametrize("asked", [None, "nccl"])
def test_a_rank_on_a_part_of_a_gpu_is_shown_it_and_its_name_is_not_told(chosen, asked):
    parts = {"CUDA_VISIBLE_DEVICES": "MIG-secret"}
    choice = chosen(1, (1,), asked, extra=parts)
    assert choice.ranks == [shared(0) | parts]
    assert "CUDA_VISIBLE_DEVICES (each rank its own)" in choice.note and "secret" not in choice.note


def test_hosts_with_a_link_use_it_and_share_the_gpus_of_this_machine(chosen):
    choice = chosen(1, (1, 1), "nccl", [HOST, HOST])
    assert choice.nodes == [over("eth0")] * 2 and choice.ranks == [shared(0), shared(1)]
    own = chosen(2, (1, 1), "nccl", [HOST, HOST])
    assert [node["NCCL_SOCKET_IFNAME"] for node in own.nodes] == ["eth0", "eth0"]
    assert [node["NCCL_HOSTID"] for node in own.nodes] == ["node0", "node1"]
    assert chosen(1, (1, 1), "gloo", [HOST, HOST]).nodes == [GLOO] * 2
    assert chosen(0, (1, 1), None, [HOST, HOST]).nodes == [{}] * 2


@pytest.mark.parametrize("asked", [None, "gloo", "nccl"])
def test_the_network_of_real_computers_is_left_as_it_is(chosen, asked, tmp_path):
    choice = chosen(1, (2, 2), asked, [COMPUTER, COMPUTER])
    assert choice.nodes == [{"gloo": GLOO, "nccl": NCCL, None: {}}[asked]] * 2 and choice.ranks == ()
    environment = environment_for(Launch("x.py", nodes=(2, 2)), None, None, tmp_path)
    assert not {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_HOSTID"} & environment.keys()


def test_what_the_reader_sets_is_set(chosen, monkeypatch):
    choice = chosen(1, (2,), "nccl", extra={"NCCL_IB_DISABLE": 0, "NCCL_SOCKET_IFNAME": "wlan0"})
    assert choice.nodes == [{}] and "NCCL_IB_DISABLE" not in choice.ranks[0]
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "wlan0")
    assert chosen(1, (2,), "nccl").nodes == [{}]
    assert chosen(1, (1, 1), "nccl", [HOST, HOST]).nodes == [over("eth0")] * 2
    masked = chosen(8, (1, 1), "nccl", extra={"CUDA_VISIBLE_DEVICES": "6,7"})
    assert [node["CUDA_VISIBLE_DEVICES"] for node in masked.nodes] == ["GPU-6", "GPU-7"]
    assert chosen(8, (2,), None, extra={"CUDA_VISIBLE_DEVICES": "-1"}).nodes == [{}]


@pytest.mark.parametrize(
    ("gpus", "asked", "sentence"),
    [(0, "nccl", "This machine shows no NVIDIA GPU"), (1, "mpi", 'backend is "gloo" or "nccl", or left out')],
)
def test_what_cannot_be_is_one_sentence(chosen, gpus, asked, sentence):
    with pytest.raises(WorldError, match=sentence):
        chosen(gpus, (2,), asked)


@pytest.mark.parametrize("flag", ["--no-python", "--run-path"])
def test_a_program_without_a_python_of_its_own_cannot_share(chosen, flag):
    with pytest.raises(WorldError, match=f"With {flag}, torchrun starts no Python for each rank"):
        chosen(1, (2,), "nccl", flags=(flag,))
    assert chosen(2, (2,), "nccl", flags=(flag,)).nodes == [NCCL]


@pytest.mark.parametrize("reader", [None, "the reader's"])
def test_the_script_of_a_rank_sets_its_variables_and_becomes_python(tmp_path, reader):
    python = tmp_path / (reader or "python of mine")
    python.symlink_to("/bin/echo" if reader else sys.executable)
    environment = {"PYTHON_EXEC": str(python)} if reader else {}
    script = rank_script([shared(0), shared(1)], environment.get("PYTHON_EXEC"), str(python))
    (tmp_path / "script").write_text(script)
    given = os.environ | {"RANK": "1"}
    command = ["/bin/sh", str(tmp_path / "script"), *(["two words"] if reader else ["-c", SHOW])]
    said = subprocess.run(command, env=given, capture_output=True, text=True, check=True, timeout=300).stdout
    assert said == "two words\n" if reader else json.loads(said) == shared(1) | {"RANK": "1"}


def test_a_folder_from_which_nothing_runs_is_one_sentence(tmp_path, monkeypatch):
    assert os.access(python_for([shared(0)], {}, tmp_path)["PYTHON_EXEC"], os.X_OK)
    monkeypatch.setattr(devices.os, "access", lambda *_: False)
    with pytest.raises(RanklabError, match=r"runs nothing from there \(noexec\): name another folder"):
        python_for([shared(0)], {}, tmp_path)


@pytest.mark.parametrize("rdzv", ["static", "c10d"])
def test_torchrun_gives_each_rank_its_own_variables(monkeypatch, tmp_path, gpus_on_this_machine, rdzv):
    gpus_on_this_machine("GPU-0")
    monkeypatch.setenv("IPP_NONINTERACTIVE", "1")
    script = written(tmp_path, SHOW)
    run = ranklab.torchrun(script, nproc_per_node=[1, 2], rdzv=rdzv, backend="nccl", show=False)
    assert run.failure is None, run.failure
    ranks = [shared(rank) | over("lo") | {"RANK": str(rank)} for rank in range(3)]
    assert [json.loads(text) for text in run.outputs] == ranks
    text = run.bundle()[0]["text/plain"]
    assert text.splitlines()[:3] == [*run.commands.splitlines(), run.note] and "HOSTID=rank$RANK" in run.note
    assert "PYTHON_EXEC" not in text
