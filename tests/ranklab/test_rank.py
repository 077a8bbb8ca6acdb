"""The device of a rank, on machines with any number of GPUs; torch is asked, so its answers are played here."""

import os

import pytest
import torch
from torch.cuda import _parse_visible_devices

import ranklab
from ranklab.engines import devices
from ranklab.engines.devices import (
    check_backend,
    choose_backend_elsewhere,
    choose_devices,
    devices_for,
    to_type,
)
from ranklab.errors import WorldError
from ranklab.layout import places, shell_commands
from ranklab.system import backends
from ranklab.system.foreign import read_places
from ranklab.system.gpus import own_gpu, visible_gpu_names, visible_gpus

LAUNCHED_BY = {
    "ranklab": {"RANKLAB_BACKEND": "nccl"},
    "ranklab, shared": {"RANKLAB_BACKEND": "nccl", "RANKLAB_SHARED": "1"},
    "torchrun": {"TORCHELASTIC_RUN_ID": "none"},
    "srun": {},
    "ranklab on Slurm": {"RANKLAB_BACKEND": "nccl", "RANKLAB_ENGINES": "slurm"},
    "ranklab on Slurm, gloo": {"RANKLAB_BACKEND": "gloo", "RANKLAB_ENGINES": "slurm"},
}


@pytest.mark.parametrize(
    ("launcher", "local_rank", "local_world_size", "gpus", "device"),
    [
        ("torchrun", 3, 4, 8, "cuda:3"),
        ("torchrun", 3, 4, 4, "cuda:3"),
        ("torchrun", 0, 4, 2, "cpu"),
        ("torchrun", 3, 4, 1, "cpu"),
        ("torchrun", 0, 1, 1, "cuda:0"),
        ("torchrun", 0, 2, 0, "cpu"),
        ("ranklab", 1, 2, 2, "cuda:1"),
        ("ranklab", 1, 4, 1, "cpu"),
        ("srun", 3, 8, 1, "cuda:0"),
        ("ranklab on Slurm", 3, 4, 1, "cuda:0"),
        ("ranklab on Slurm", 3, 4, 4, "cuda:3"),
        ("ranklab on Slurm, gloo", 0, 2, 1, "cpu"),
        ("srun", 3, 8, 8, "cuda:3"),
        ("srun", 3, 8, 2, "cpu"),
        ("ranklab, shared", 1, 2, 2, "cuda:1"),
        ("ranklab, shared", 3, 4, 1, "cuda:0"),
        ("ranklab, shared", 3, 4, 2, "cuda:1"),
    ],
)
def test_device(monkeypatch, launcher, local_rank, local_world_size, gpus, device):
    for name in ("RANKLAB_BACKEND", "RANKLAB_SHARED", "RANKLAB_ENGINES", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in LAUNCHED_BY[launcher].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LOCAL_RANK", str(local_rank))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(local_world_size))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert str(ranklab.device()) == device


GLOO = {"RANKLAB_BACKEND": "gloo", "CUDA_VISIBLE_DEVICES": ""}
NCCL = {"RANKLAB_BACKEND": "nccl"}
FEWER = "fewer than {} ranks: the ranks use the CPU and gloo, and see no GPU"
SHARE = 'backend="nccl" lets ranks share a GPU.'


def shared(rank):
    return NCCL | {"RANKLAB_SHARED": "1", "NCCL_HOSTID": f"rank{rank}", "NCCL_IB_DISABLE": "1"}


def seen(*gpus):
    return {"CUDA_VISIBLE_DEVICES": ",".join(f"GPU-{gpu}" for gpu in gpus)}


def on_node(node, *gpus):
    return NCCL | {"NCCL_HOSTID": f"node{node}", "NCCL_IB_DISABLE": "1"} | seen(*gpus)


@pytest.fixture
def chosen(monkeypatch):
    """What ranks get on a machine with so many GPUs: backend, environments, and the sentence that was said."""

    def choose(nodes, gpus, asked):
        sentences = []
        monkeypatch.setattr(devices, "visible_gpu_names", lambda: [f"GPU-{number}" for number in range(gpus)])
        monkeypatch.setattr(devices, "tell", sentences.append)
        return *choose_devices(nodes, asked), " ".join(sentences)

    return choose


@pytest.mark.parametrize(
    ("nodes", "gpus", "asked", "environments", "told"),
    [
        ((4,), 0, None, [GLOO] * 4, ""),
        ((4,), 0, "gloo", [GLOO] * 4, ""),
        ((4,), 2, None, [GLOO] * 4, f"2 GPUs are {FEWER.format(4)}; {SHARE}"),
        ((2, 2), 1, None, [GLOO] * 4, f"1 GPU is {FEWER.format(4)}; {SHARE}"),
        ((4,), 8, "gloo", [GLOO] * 4, ""),
        ((4,), 4, None, [NCCL] * 4, ""),
        ((2,), 8, "nccl", [NCCL] * 2, ""),
        ((1,), 1, None, [NCCL], ""),
        ((2, 1), 8, None, [on_node(0, 0, 1), on_node(0, 0, 1), on_node(1, 2)], ""),
        ((3,), 1, "nccl", [shared(0), shared(1), shared(2)], "3 ranks share 1 GPU: "),
        ((1, 1), 1, "nccl", [shared(0), shared(1)], "2 ranks share 1 GPU: "),
        ((3,), 2, "nccl", [shared(0), shared(1), shared(2)], "3 ranks share 2 GPUs: "),
        ((1, 1, 1), 2, "nccl", [shared(rank) | seen(rank % 2) for rank in range(3)], "3 ranks share 2 GPUs: "),
        ((9,), 8, "nccl", [shared(rank) for rank in range(9)], "9 ranks share 8 GPUs: "),
        ((8,), 8, None, [NCCL] * 8, ""),
    ],
)
def test_backend_and_gpus_of_ranks(chosen, nodes, gpus, asked, environments, told):
    backend, given, said = chosen(nodes, gpus, asked)
    assert list(given) == environments
    assert backend == environments[0]["RANKLAB_BACKEND"]
    assert said == told or (told.endswith(": ") and said.startswith(told))


@pytest.mark.parametrize("gpus", [1, 2, 3])
@pytest.mark.parametrize("nodes", [(4,), (1, 1, 1, 1), (2, 2), (1, 3)])
def test_ranks_that_share_take_gpus_in_turn_also_across_nodes(chosen, nodes, gpus):
    taken = []
    for place, environment in zip(places(nodes), chosen(nodes, gpus, "nccl")[1], strict=True):
        names = environment.get("CUDA_VISIBLE_DEVICES", ",".join(f"GPU-{gpu}" for gpu in range(gpus))).split(",")
        taken.append(names[own_gpu(place.local_rank, place.local_world_size, len(names), shared=True)])
    assert taken == [f"GPU-{rank % gpus}" for rank in range(sum(nodes))]


@pytest.mark.parametrize("parts", [["MIG-a"], ["MIG-a", "MIG-GPU-b/1/0"]])
def test_a_rank_on_a_part_of_a_gpu_sees_that_part_alone(monkeypatch, parts):
    monkeypatch.setattr(devices, "visible_gpu_names", lambda: parts)
    backend, environments = choose_devices((2,), "nccl")
    assert backend == "nccl"
    assert environments == [shared(rank) | {"CUDA_VISIBLE_DEVICES": parts[rank % len(parts)]} for rank in range(2)]
    assert bool(devices_for((2,), "nccl", parts)[1]) == (len(parts) < 2)  # it is said where two share a part
    assert choose_devices((len(parts),)).backend == "nccl"
    assert choose_devices((len(parts) + 1,)).environments == [GLOO] * (len(parts) + 1)


def test_ranks_that_share_a_gpu_are_told_what_it_is_for_and_how_to_be_rid_of_it(chosen):
    assert chosen((4,), 1, "nccl")[2] == (
        '4 ranks share 1 GPU: right for learning, not for speed. backend="gloo" keeps them on the CPU.'
    )


def test_nccl_without_a_gpu_is_one_sentence(chosen):
    with pytest.raises(WorldError, match="This machine shows no NVIDIA GPU, and NCCL needs one: leave backend out"):
        chosen((4,), 0, "nccl")


@pytest.mark.parametrize("asked", ["NCCL", "mpi", 1])
def test_a_backend_that_does_not_exist(asked):
    with pytest.raises(WorldError, match='backend is "gloo" or "nccl", or left out, not'):
        check_backend(asked)


def test_ranks_on_the_cpu_see_no_gpu_and_those_with_one_each_see_all():
    assert backends.environment("gloo") == {"RANKLAB_BACKEND": "gloo", "CUDA_VISIBLE_DEVICES": ""}
    assert backends.environment("nccl") == {"RANKLAB_BACKEND": "nccl"}


TOO_FEW = "fewer than {} ranks: the ranks use the CPU and gloo, and see no GPU."


@pytest.mark.parametrize(
    ("hosts", "seen", "backend", "told"),
    [
        (["a", "a"], [[], []], "gloo", ""),
        (["a", "a"], [["A", "B"], ["A", "B"]], "nccl", ""),
        (["a", "a"], [["A"], ["B"]], "nccl", ""),
        (["a", "a"], [["A"], ["A"]], "gloo", "1 GPU is " + TOO_FEW.format(2)),
        (["a", "a", "a"], [["A", "B"]] * 3, "gloo", "2 GPUs are " + TOO_FEW.format(3)),
        (["a", "a", "b"], [["A", "B"], ["A", "B"], ["A"]], "nccl", ""),
        (["a", "b"], [["A"], []], "gloo", "0 GPUs are " + TOO_FEW.format(1)),
        (["a", "a"], [["A", "B"], ["B", "A"]], "gloo", "The launcher does not show each rank a GPU of its own"),
    ],
)
def test_backend_of_ranks_that_another_launcher_has_started(monkeypatch, hosts, seen, backend, told):
    sentences = []
    monkeypatch.setattr(devices, "tell", sentences.append)
    assert choose_backend_elsewhere(read_places(hosts), seen) == backend
    assert len(sentences) == bool(told) and all(told in sentence for sentence in sentences)


def test_another_launchers_ranks_get_the_backend_that_was_asked_for(monkeypatch):
    monkeypatch.setattr(devices, "tell", pytest.fail)
    two = read_places(["a", "a"])
    assert choose_backend_elsewhere(two, [["A"], ["B"]], "gloo") == "gloo"
    assert choose_backend_elsewhere(two, [["A"], ["A"]], "gloo") == "gloo"
    assert choose_backend_elsewhere(two, [["A"], ["B"]], "nccl") == "nccl"
    with pytest.raises(WorldError, match=r"1 GPU is fewer than 2 ranks\. Start fewer ranks"):
        choose_backend_elsewhere(two, [["A"], ["A"]], "nccl")


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        (None, ["GPU-aa", "GPU-bb"]),
        ("1,0", ["GPU-bb", "GPU-aa"]),
        ("GPU-b", ["GPU-bb"]),
        ("0,-1,1", ["GPU-aa"]),
        ("0,7,1", ["GPU-aa"]),
        ("MIG-1", ["MIG-1"]),
        ("MIG-1,MIG-GPU-aa/1/0", ["MIG-1", "MIG-GPU-aa/1/0"]),
        ("MIG-1,MIG-1", []),
        ("MIG-1,0", ["MIG-1"]),
        ("0,MIG-1", ["GPU-aa"]),
        ("GPU-bb,GPU-aa", ["GPU-bb", "GPU-aa"]),
        ("GPU-bb,0", ["GPU-bb"]),
        ("GPU-", []),
        ("GPU-b,GPU-bb", []),
        ("0,0", []),
        ("1a,0b", ["GPU-bb", "GPU-aa"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        (" 1", ["GPU-bb"]),
    ],
)
def test_the_gpus_that_a_process_sees(monkeypatch, gpus_on_this_machine, shown, names):
    gpus_on_this_machine("GPU-aa", "GPU-bb")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if shown is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    assert visible_gpu_names() == names
    assert visible_gpus() == len(names)
    if not (shown or "").startswith("MIG-"):  # torch leaves those to CUDA
        monkeypatch.setattr(torch.cuda, "_raw_device_count_nvml", lambda: 2)
        monkeypatch.setattr(torch.cuda, "_raw_device_uuid_nvml", lambda: ["GPU-aa", "GPU-bb"])
        monkeypatch.setattr(torch.cuda, "_parse_visible_devices", torch_reads)
        assert torch.cuda._device_count_nvml() == len(names)


def torch_reads():
    """What torch reads, but on a machine with two GPUs where nothing is masked."""
    return _parse_visible_devices() if "CUDA_VISIBLE_DEVICES" in os.environ else [0, 1]


@pytest.mark.parametrize("count", [0, 1, 2, 8])
def test_gpus_are_counted_also_where_one_is_cut_into_parts(monkeypatch, program, count):
    lines = [f"echo 'GPU {gpu}: NVIDIA A100 (UUID: GPU-{gpu})'" for gpu in range(count)]
    lines[1:] = ["echo '  MIG 3g.20gb     Device  0: (UUID: MIG-0)'", *lines[1:]]
    program("nvidia-smi", "\n".join(lines))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus() == count
    for shown in ("MIG-0", ""):
        assert visible_gpu_names({"CUDA_VISIBLE_DEVICES": shown}) == [shown] * (bool(shown) and count > 0)


def test_commands_to_type_name_what_lets_ranks_share_a_gpu_and_nothing_of_ours():
    devices, _ = devices_for((2,), "nccl", ["GPU-0"])
    lines = shell_commands((2,), "127.0.0.1", "train.py", to_type(devices.environments)).splitlines()
    assert " NCCL_HOSTID=rank1 NCCL_IB_DISABLE=1 python" in lines[1] and "RANKLAB" not in lines[1]
    assert to_type(devices_for((2,), "gloo", ["GPU-0"])[0].environments) == to_type(()) == []
