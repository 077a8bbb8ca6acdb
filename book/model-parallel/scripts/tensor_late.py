"""What the cells of *tensor-parallel* have made up to its middle, for somebody who came late.

%run -i scripts/tensor_late.py      # in a cell, on the ranks
"""

import sys
import warnings

import torch
import torch.distributed as dist
import torch.nn.functional as F

import ranklab

sys.path.insert(0, "scripts")
from accounts import account  # noqa: F401
from over_a_cable import Enter, Leave  # f and g, as on the page

warnings.simplefilter("ignore")
device = ranklab.device()
if device.type == "cuda":
    torch.cuda.set_device(device)
if not dist.is_initialized():
    dist.init_process_group(dist.get_default_backend_for_device(device))
rank, size = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)
shapes = {"q": (64, 64), "k": (64, 64), "v": (64, 64), "out": (64, 64)}
shapes |= {"up": (256, 64), "down": (64, 256)}
weights = {name: torch.randn(shape) / 8 for name, shape in shapes.items()}
weights |= {"norm1": torch.ones(64), "norm2": torch.ones(64)}
x, target = torch.randn(64, 64).to(device), torch.randn(64, 64).to(device)
weights = {name: weight.to(device) for name, weight in weights.items()}
CUT = {"q": 0, "k": 0, "v": 0, "out": 1, "up": 0, "down": 1}
f, g = Enter.apply, Leave.apply


def mlp(x, w):
    """Two matrices with GELU between them."""
    return F.linear(F.gelu(F.linear(x, w["up"])), w["down"])


def off(some, wanted):
    """Return the relative distance of two tensors."""
    return ((some - wanted).norm() / wanted.norm()).item()


def step(layer, x, w, *edges, goal=target):
    """Go forward and backward; return the output, the loss and the gradient of the input."""
    for each in w.values():
        each.grad = None
    x = x.clone().requires_grad_()
    y = layer(x, w, *edges)
    loss = (y - goal).square().sum() / 4096
    loss.backward()
    return y.detach(), loss.item(), x.grad


def share(name, tensor):
    """Return what this rank has of a matrix, or a copy of what everybody has."""
    if name in CUT:
        tensor = tensor.chunk(size, CUT[name])[rank]
    return tensor.clone()


def cut(weights):
    """Return this rank's share of every weight."""
    return {name: share(name, weights[name]).requires_grad_() for name in weights}


def wrong_by(name, mine):
    """Compare the gradient of a share with the share of the one-process gradient."""
    return off(mine[name].grad, share(name, whole[name].grad))


def same(x):
    """Do nothing, in the place of f or g."""
    return x


def cut_mlp(x, w, f, g):
    """Run the MLP on this rank's shares, between f and g."""
    return g(mlp(f(x), w))


def attention(x, w):
    """Attend with heads of 16 columns, as many as there are."""
    parts = [F.linear(x, w[name]).unflatten(1, (-1, 16)) for name in "qkv"]
    q, k, v = (part.transpose(0, 1) for part in parts)
    mixed = (q @ k.mT / 4).softmax(-1) @ v
    return F.linear(mixed.transpose(0, 1).flatten(1), w["out"])


def block(x, w, f=same, g=same):
    """Run a transformer block: attention, then the MLP."""
    x = x + g(attention(f(F.layer_norm(x, (64,), w["norm1"])), w))
    return x + g(mlp(f(F.layer_norm(x, (64,), w["norm2"])), w))


whole = {name: each.clone().requires_grad_() for name, each in weights.items()}
y, loss, dx = step(block, x, whole)
