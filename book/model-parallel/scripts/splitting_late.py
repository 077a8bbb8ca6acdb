"""What the cells of *splitting-layers* have made up to its middle, for somebody who came late.

%run -i scripts/splitting_late.py      # in a cell, on the ranks and in the notebook
"""

import os
import sys
import time
from contextlib import contextmanager

import torch
import torch.distributed as dist
import torch.nn.functional as F

import ranklab
from ranklab.figures import chart  # noqa: F401
from ranklab.palette import INK, MUTED, RULE  # noqa: F401

sys.path.insert(0, "scripts")
from resnet import resnet50

torch.set_num_threads(1)
torch.backends.cudnn.allow_tf32 = False
rank, device, events = int(os.environ.get("RANK", "-1")), torch.device("cpu"), []
if rank >= 0:
    device = ranklab.device()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        dist.init_process_group(dist.get_default_backend_for_device(device))
draw = torch.Generator().manual_seed(0)
images = torch.randn(8, 3, 64, 64, generator=draw).to(device)
labels = torch.randint(0, 1000, (8,), generator=draw).to(device)
shapes, x = [], images.to("meta")
for part in resnet50().to("meta"):
    shapes.append(list(x.shape))
    x = part(x)


def settle():
    """Wait until this rank's device has done what it was given."""
    if device.type != "cpu":
        torch.accelerator.synchronize()


@contextmanager
def busy(label):
    """Note when this rank computes."""
    settle()
    began = time.time()
    yield
    settle()
    events.append((label, began, time.time()))


def forward(stage, cut):
    """Receive, compute, and keep what came in and what came out."""
    x = images
    if rank > 0:
        x = torch.empty(shapes[cut[rank]], device=device)
        dist.recv(x, src=rank - 1)
        x.requires_grad_()
    with busy("F"):
        y = stage(x)
        if rank == len(cut) - 2:
            y = F.cross_entropy(y, labels)
    return x, y


def step(stage, cut):
    """Forward and backward of a stage, with what it sends and receives."""
    x, y = forward(stage, cut)
    gradient = torch.ones_like(y)
    if rank < len(cut) - 2:
        dist.send(y.detach(), dst=rank + 1)
        dist.recv(gradient, src=rank + 1)
    with busy("B"):
        y.backward(gradient)
    if rank > 0:
        dist.send(x.grad, dst=rank - 1)
    return y.detach()


cut = [0, 4, 8, 14, 18]
if rank >= 0:
    four = resnet50(cut[rank], cut[rank + 1]).to(device)
if rank in (0, 1):
    two = resnet50(8 * rank, 8 + 10 * rank).to(device)
