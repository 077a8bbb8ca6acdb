"""A network of equal blocks, the plan that cuts a block for tensor parallel, and what the chapter *meshes* asks of it.

model = network(blocks=4, width=64)
parallelize_module(model[0], mesh["tensor"], plan())
average(model, mesh.get_group("data"))
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel


class Block(nn.Module):
    """Widen, bend, narrow, and add what came in."""

    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        """Return x and what the two layers add to it."""
        return x + self.down(F.gelu(self.up(x)))


def network(blocks=4, width=64):
    """Return the same network on every rank: the seed is fixed."""
    torch.manual_seed(0)
    return nn.Sequential(*[Block(width) for _ in range(blocks)])


def plan():
    """Cut the first layer by its columns and the second by its rows."""
    return {"up": ColwiseParallel(), "down": RowwiseParallel()}


def local(tensor):
    """Return the part of a tensor that this rank holds."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(tensor):
    """Return all of a tensor; its ranks have to call it together."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def average(model, group):
    """Replace each gradient by its mean over a group, in one all_reduce."""
    grads = [local(parameter.grad) for parameter in model.parameters()]
    flat = torch.cat([grad.flatten() for grad in grads])
    dist.all_reduce(flat, group=group)
    flat /= dist.get_world_size(group)
    for grad, mean in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
        grad.copy_(mean.view_as(grad))


def apart(model, serial):
    """Return the largest relative difference from the gradients of one process; its ranks have to call it together."""
    worst = 0.0
    for parameter, wanted in zip(model.parameters(), serial, strict=True):
        grad = whole(parameter.grad).cpu()
        worst = max(worst, ((grad - wanted).norm() / wanted.norm()).item())
    return worst
