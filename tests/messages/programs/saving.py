"""What is saved, what is loaded, and what is sharded."""

import contextlib
import os
import warnings

import numpy
import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import CPUOffloadPolicy, FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

from .. import stage
from . import meet


@stage.program()
def numpy_in_a_checkpoint(rank):
    torch.save({"generator": numpy.random.get_state()}, "saved.pt")
    torch.load("saved.pt")


class Settings:
    pass


@stage.program()
def class_in_a_checkpoint(rank):
    torch.save({"settings": Settings()}, "saved.pt")
    torch.load("saved.pt")


@stage.program()
def cut_short(rank):
    torch.save(torch.ones(1000), "saved.pt")
    os.truncate("saved.pt", 2000)
    torch.load("saved.pt")


@stage.program()
def other_shape(rank):
    nn.Linear(2, 2).load_state_dict(nn.Linear(2, 3).state_dict())


@stage.program()
def other_optimizer(rank):
    one, two = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    torch.optim.AdamW(two.parameters()).load_state_dict(torch.optim.AdamW(one.parameters()).state_dict())


@stage.program()
def other_number_of_groups(rank):
    one = nn.Linear(2, 2)
    groups = [{"params": [one.weight]}, {"params": [one.bias]}]
    torch.optim.AdamW(groups).load_state_dict(torch.optim.AdamW(one.parameters()).state_dict())


@stage.program()
def key_missing_in_dcp(rank):
    meet()
    dcp.save({"weight": torch.ones(2)}, checkpoint_id="saved")
    dcp.load({"weight": torch.ones(2), "bias": torch.ones(2)}, checkpoint_id="saved")


@stage.program()
def other_shape_in_dcp(rank):
    meet()
    dcp.save({"weight": torch.ones(2)}, checkpoint_id="saved")
    dcp.load({"weight": torch.ones(3)}, checkpoint_id="saved")


@stage.program()
def no_dcp_there(rank):
    meet()
    dcp.load({"weight": torch.ones(3)}, checkpoint_id="nothing")


@stage.program()
def fsdp1_on_a_cpu(rank):
    meet()
    FullyShardedDataParallel(nn.Linear(2, 2))


@stage.program()
def offload_without_a_gpu(rank):
    meet()
    model = fully_shard(
        nn.Linear(2, 2), mesh=torch.distributed.init_device_mesh("cpu", (1,)), offload_policy=CPUOffloadPolicy()
    )
    model(torch.ones(1, 2))


@stage.program()
def container(rank):
    meet()
    fully_shard(nn.ModuleList([nn.Linear(2, 2)]))


@stage.program()
def sharded_in_two_dtypes(rank):
    meet()
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, dtype=torch.float64))
    fully_shard(model, mesh=torch.distributed.init_device_mesh("cpu", (1,)))
    model(torch.ones(1, 2))


@stage.program()
def sharded_twice(rank):
    meet()
    fully_shard(fully_shard(nn.Linear(2, 2)))


@stage.program()
def mixed_with_dtensor(rank):
    meet()
    mesh = torch.distributed.init_device_mesh("cpu", (1,))
    distribute_tensor(torch.ones(2), mesh, [Shard(0)]) + torch.ones(2)


@stage.program(ranks=2)
def shards_of_a_cpu(rank):
    meet()
    mesh = torch.distributed.init_device_mesh("cpu", (2,))
    distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)]).redistribute(mesh, [Shard(1)])


@stage.program()
def on_meta(rank):
    meet()
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    fully_shard(model, mesh=torch.distributed.init_device_mesh("cpu", (1,)))
    model(torch.ones(1, 2))


@stage.program()
def meta_to_cpu(rank):
    nn.Linear(2, 2, device="meta").to("cpu")


@stage.program()
def plain_state_into_shards(rank):
    meet()
    model = nn.Linear(2, 2)
    saved = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fully_shard(model, mesh=torch.distributed.init_device_mesh("cpu", (1,)))
    model.load_state_dict(saved)


@stage.program()
def backward_of_a_view(rank):
    warnings.simplefilter("always")
    weight = torch.ones(2, requires_grad=True)
    with contextlib.suppress(RuntimeError):
        weight.sum().backward()
    weight += 1


@stage.program()
def disk_full(rank):
    with open("/dev/full", "wb") as file:
        file.write(bytes(1 << 20))


@stage.program()
def disk_full_for_torch(rank):
    torch.save(torch.ones(100_000), "/dev/full")
