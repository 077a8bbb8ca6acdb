"""The device of a rank, on machines with any number of GPUs; torch is asked, so its answers are played here."""

import pytest
import torch

import ranklab
from ranklab.engines.choice import choose_backend
from ranklab.engines.gpus import backend_environment

LAUNCHED_BY = {
    "ranklab": {"RANKLAB_BACKEND": "nccl"},
    "torchrun": {"TORCHELASTIC_RUN_ID": "none"},
    "srun": {},
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
        ("srun", 3, 8, 8, "cuda:3"),
        ("srun", 3, 8, 2, "cpu"),
    ],
)
def test_device(monkeypatch, launcher, local_rank, local_world_size, gpus, device):
    for name in ("RANKLAB_BACKEND", "TORCHELASTIC_RUN_ID"):
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
    assert backend_environment("gloo") == {"RANKLAB_BACKEND": "gloo", "CUDA_VISIBLE_DEVICES": ""}
    assert backend_environment("nccl") == {"RANKLAB_BACKEND": "nccl"}
