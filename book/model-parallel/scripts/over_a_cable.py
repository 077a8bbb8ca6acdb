"""Two ranks train four layers, cut through the layers and then between them. The chapter *tensor-parallel* runs it.

torchrun --nproc-per-node=1 --nnodes=2 ... over_a_cable.py        # one process on each of two hosts
"""

import json
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

import ranklab

LAYERS, TOKENS, WIDTH = 4, 2048, 128  # an activation of 1 MiB


class Enter(torch.autograd.Function):
    """f: nothing in forward, a sum over the ranks in backward."""

    @staticmethod
    def forward(ctx, x):
        """Take the activation, which every rank has."""
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        """Add the ranks' terms of its gradient."""
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


class Leave(torch.autograd.Function):
    """g: a sum over the ranks in forward, nothing in backward."""

    @staticmethod
    def forward(ctx, x):
        """Add the ranks' terms of the activation."""
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        """Pass the gradient of the sum on to each term."""
        return gradient


def mlp(x, up, down):
    """Two matrices with GELU between them."""
    return F.linear(F.gelu(F.linear(x, up)), down)


def through(layers, x, rank):
    """Tensor parallel: each rank has half of every layer. The loss is the mean square."""
    x = x.clone().requires_grad_()  # as if there were layers before these
    for up, down in layers:
        x = Leave.apply(mlp(Enter.apply(x), up.chunk(2, 0)[rank], down.chunk(2, 1)[rank]))
    x.square().mean().backward()


def between(layers, x, rank):
    """Pipeline with one micro-batch: each rank has half of the layers, whole."""
    x = x.clone().requires_grad_()
    if rank == 1:
        dist.recv(x.detach(), src=0)
    y = x
    for up, down in layers[2 * rank : 2 * rank + 2]:
        y = mlp(y, up, down)
    gradient = torch.empty_like(y)
    if rank == 0:
        dist.send(y.detach(), dst=1)
        dist.recv(gradient, src=1)
        y.backward(gradient)
    else:
        y.square().mean().backward()
        dist.send(x.grad, dst=0)


def main():
    """Take three turns of both, and print the seconds and bytes of each as JSON."""
    dist.init_process_group("gloo")
    torch.set_num_threads(1)  # the hosts share this machine's cores
    torch.manual_seed(0)
    rank, told = dist.get_rank(), {}
    layers = [(torch.randn(WIDTH, WIDTH) / 11, torch.randn(WIDTH, WIDTH) / 11) for _ in range(LAYERS)]
    for pair in layers:
        for weight in pair:
            weight.requires_grad_()
    x = torch.randn(TOKENS, WIDTH)
    for cut in (through, between) * 3:
        dist.barrier()
        began = time.perf_counter()
        with ranklab.meter() as meter:
            cut(layers, x, rank)
        dist.barrier()
        each = told.setdefault(cut.__name__, {"seconds": [], "bytes": 0})
        each["seconds"].append(time.perf_counter() - began)
        each["bytes"] = meter.payload["all_reduce"] + meter.payload["send"]
        for pair in layers:
            for weight in pair:
                weight.grad = None
    print(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
