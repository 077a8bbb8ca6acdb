"""DistributedDataParallel, its hooks and its neighbours."""

import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from .. import stage
from . import meet


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, both=False):
        return self.second(self.first(x)) if both else self.first(x)


def train(model, steps=2, **options):
    for _ in range(steps):
        model(torch.ones(3, 2), **options).sum().backward()


@stage.program()
def unused_parameter(rank):
    meet()
    train(DistributedDataParallel(TwoHeads()))


@stage.program()
def nothing_unused(rank):
    meet()
    train(DistributedDataParallel(TwoHeads(), find_unused_parameters=True), both=True)


@stage.program()
def static_graph_changes(rank):
    meet()
    model = DistributedDataParallel(TwoHeads(), static_graph=True)
    train(model, both=True)
    train(model, both=False)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        x = checkpoint(self.layer, x, use_reentrant=True)
        return checkpoint(self.layer, x, use_reentrant=True)


@stage.program()
def recomputed_twice(rank):
    meet()
    model = DistributedDataParallel(Twice(), find_unused_parameters=True)
    model(torch.ones(3, 2, requires_grad=True)).sum().backward()


@stage.program(ranks=2)
def other_number_of_parameters(rank):
    meet()
    DistributedDataParallel(nn.Linear(2, 2, bias=rank == 0))


@stage.program(ranks=2)
def other_shape_of_a_parameter(rank):
    meet()
    DistributedDataParallel(nn.Linear(2, 2 + rank, bias=False))


@stage.program()
def all_frozen(rank):
    meet()
    DistributedDataParallel(nn.Linear(2, 2).requires_grad_(False))


@stage.program()
def lazy(rank):
    meet()
    DistributedDataParallel(nn.LazyLinear(2))


@stage.program()
def device_ids_on_a_cpu(rank):
    meet()
    DistributedDataParallel(nn.Linear(2, 2), device_ids=[0])


@stage.program()
def two_kinds_of_device(rank):
    meet()
    DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta")))


@stage.program()
def attribute_of_the_module(rank):
    meet()
    print(DistributedDataParallel(TwoHeads()).first)


@stage.program()
def prefix(rank):
    meet()
    saved = DistributedDataParallel(nn.Linear(2, 2)).state_dict()
    nn.Linear(2, 2).load_state_dict(saved)


@stage.program()
def hook_with_another_name(rank):
    meet()

    def hook(state, gradients):
        return torch.futures.Future()

    DistributedDataParallel(nn.Linear(2, 2)).register_comm_hook(None, hook)


@stage.program()
def hook_with_another_type(rank):
    meet()

    def hook(state, bucket: torch.Tensor):
        return torch.futures.Future()

    DistributedDataParallel(nn.Linear(2, 2)).register_comm_hook(None, hook)


@stage.program()
def hook_twice(rank):
    meet()

    def hook(state, bucket):
        return torch.futures.Future()

    model = DistributedDataParallel(nn.Linear(2, 2))
    model.register_comm_hook(None, hook)
    model.register_comm_hook(None, hook)


@stage.program()
def hook_of_gpus(rank):
    meet()
    model = DistributedDataParallel(nn.Linear(2, 2))
    model.register_comm_hook(None, bf16_compress_hook)


@stage.program()
def sync_batch_norm_on_a_cpu(rank):
    meet()
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4)))
    DistributedDataParallel(model)(torch.ones(3, 2))


@stage.program()
def batch_of_one(rank):
    nn.BatchNorm1d(4)(torch.ones(1, 4))


@stage.program(ranks=2)
def join_early(rank):
    meet()
    model = DistributedDataParallel(nn.Linear(2, 2))
    with Join([model], throw_on_early_termination=True):
        train(model, steps=1 + rank)


@stage.program()
def broadcast_buffers(rank):
    meet()
    warnings.simplefilter("always")
    DistributedDataParallel(nn.Linear(2, 2), broadcast_buffers=False)


@stage.program(ranks=2)
def not_consolidated(rank):
    meet()
    model = nn.Linear(2, 2)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.state_dict()


@stage.program()
def half_precision_without_a_scaler(rank):
    torch.amp.GradScaler("cuda")


@stage.program()
def unscaled_twice(rank):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


@stage.program()
def backward_twice(rank):
    loss = nn.Linear(2, 2)(torch.ones(1, 2)).exp().sum()
    loss.backward()
    loss.backward()


@stage.program()
def graph_ended(rank):
    meet()
    model = DistributedDataParallel(nn.Linear(2, 2))
    with torch.no_grad():
        loss = model(torch.ones(1, 2)).sum()
    loss.backward()
    dist.barrier()


class CountsItsCalls(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("calls", torch.zeros(2))

    def forward(self, x):
        self.calls += 1
        return self.layer(x) * self.calls


@stage.program()
def buffer_changed_between(rank):
    meet()
    model = DistributedDataParallel(CountsItsCalls())
    first, second = model(torch.ones(3, 2)), model(torch.ones(3, 2))
    (first + second).sum().backward()
