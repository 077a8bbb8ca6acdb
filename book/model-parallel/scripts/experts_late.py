"""What the cells of *context-and-experts* have made up to its middle, for somebody who came late.

%run -i scripts/experts_late.py      # in a cell, on the ranks and in the notebook
"""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

import ranklab
from ranklab.palette import rank_color  # noqa: F401

torch.set_num_threads(1)
rank, size, device = int(os.environ.get("RANK", "-1")), 4, torch.device("cpu")
if rank >= 0:
    device = ranklab.device()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        dist.init_process_group(dist.get_default_backend_for_device(device))
draw = torch.Generator().manual_seed(0)
q, k, v, target = (each.to(device) for each in torch.randn(4, 4, 64, 16, generator=draw))


def attend(q, k, v, visible):
    """Return the attention to some keys, and for each query the log of its sum of exponentials."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~visible, -1e9)
    lse = scores.logsumexp(-1, keepdim=True)
    return (scores - lse).exp() @ v, lse


def apart(some, wanted):
    """Return how far a tensor is from another, relative to that one."""
    return ((some - wanted).norm() / wanted.norm()).item()


def merge(one, other):
    """Return the attention to the keys of both parts."""
    out, lse = one
    out2, lse2 = other
    total = torch.logaddexp(lse, lse2)
    share, share2 = (lse - total).exp(), (lse2 - total).exp()
    return share * out + share2 * out2, total


def shift(block, by):
    """Give a block to a neighbour, and return what comes from the other side."""
    block = block.contiguous()
    arrived = torch.empty_like(block)
    give = dist.P2POp(dist.isend, block, (rank + by) % size)
    take = dist.P2POp(dist.irecv, arrived, (rank - by) % size)
    for work in dist.batch_isend_irecv([give, take]):
        work.wait()
    return arrived


class Pass(torch.autograd.Function):
    """Forward a block goes to the right, backward its gradient to the left."""

    @staticmethod
    def forward(ctx, block):
        """Pass the block on."""
        return shift(block, by=1)

    @staticmethod
    def backward(ctx, gradient):
        """Pass the gradient back."""
        return shift(gradient, by=-1)


def in_order(r):
    """Return the tokens of a rank, cut in order."""
    return torch.arange(64, device=device).chunk(size)[r]


def try_out(attention, places):
    """Return the output and the gradients of an attention over the ranks, and note what it sent."""
    mine = places(rank)
    mine_q = q[:, mine].requires_grad_()
    mine_kv = torch.stack([k, v])[:, :, mine].requires_grad_()
    with ranklab.meter() as forward:
        out = attention(mine_q, mine_kv, places)
    with ranklab.meter() as backward:
        (out * target[:, mine]).sum().backward()
    sent.append((forward.payload["send"], backward.payload["send"]))
    return [out.detach(), mine_q.grad, *mine_kv.grad]


sent, names = [], ["output", "queries", "keys", "values"]
leaves = [each.clone().requires_grad_() for each in (q, k, v)]
whole = F.scaled_dot_product_attention(*leaves, is_causal=True)
(whole * target).sum().backward()
wanted = [whole.detach(), *(leaf.grad for leaf in leaves)]
