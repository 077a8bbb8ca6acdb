"""The device of a rank, on machines with any number of GPUs; torch is asked, so its answers are played here."""

import pytest
import torch

import ranklab
from ranklab.engines.choice import choose_backend, choose_backend_elsewhere
from ranklab.system import backends
from ranklab.system.foreign import read_places
from ranklab.system.gpus import visible_gpu_names, visible_gpus

LAUNCHED_BY = {
    "ranklab": {"RANKLAB_BACKEND": "nccl"},
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
    ],
)
def test_device(monkeypatch, launcher, local_rank, local_world_size, gpus, device):
    for name in ("RANKLAB_BACKEND", "RANKLAB_ENGINES", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in LAUNCHED_BY[launcher].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LOCAL_RANK", str(local_rank))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(local_world_size))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert str(ranklab.device()) == device


@pytest.mark.parametrize(
    ("nodes", "gpus", "backend"),
    [
        ((4,), 0, "gloo"),
        ((4,), 2, "gloo"),
        ((4,), 4, "nccl"),
        ((2,), 8, "nccl"),
        ((1, 2), 8, "gloo"),
        ((1,), 1, "nccl"),
    ],
)
def test_backend(monkeypatch, nodes, gpus, backend):
    monkeypatch.setattr("ranklab.engines.choice.visible_gpus", lambda: gpus)
    assert choose_backend(nodes) == backend


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
    monkeypatch.setattr("ranklab.engines.choice.tell", sentences.append)
    assert choose_backend_elsewhere(read_places(hosts), seen) == backend
    assert len(sentences) == bool(told) and all(told in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        (None, ["GPU-aa", "GPU-bb"]),
        ("1,0", ["GPU-bb", "GPU-aa"]),
        ("GPU-b", ["GPU-bb"]),
        ("0,-1,1", ["GPU-aa"]),
        ("0,7,1", ["GPU-aa"]),
        ("MIG-1", ["MIG-1"]),
        ("", []),
    ],
)
def test_the_gpus_that_a_process_sees(monkeypatch, gpus_on_this_machine, shown, names):
    gpus_on_this_machine("GPU-aa", "GPU-bb")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if shown is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    assert visible_gpu_names() == names
    assert visible_gpus() == len(names)
