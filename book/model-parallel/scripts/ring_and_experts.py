"""Ring attention in zig-zag order, and experts behind an exchange. The chapter *context-and-experts* runs it.

torchrun --standalone --nproc-per-node=4 ring_and_experts.py
"""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F


class Pass(torch.autograd.Function):
    """Forward a block goes to the right neighbour, backward its gradient to the left one."""

    @staticmethod
    def forward(ctx, block):
        """Pass the block on."""
        return shift(block, 1)

    @staticmethod
    def backward(ctx, gradient):
        """Pass its gradient back."""
        return shift(gradient, -1)


def shift(block, by):
    """Give a block to a neighbour, and return what comes from the other side."""
    rank, size = dist.get_rank(), dist.get_world_size()
    block = block.contiguous()
    arrived = torch.empty_like(block)
    give = dist.P2POp(dist.isend, block, (rank + by) % size)
    take = dist.P2POp(dist.irecv, arrived, (rank - by) % size)
    for work in dist.batch_isend_irecv([give, take]):
        work.wait()
    return arrived


def zig_zag(rank, length, device=None):
    """The tokens of a rank; twice the number of ranks divides the length."""
    chunks = torch.arange(length, device=device).chunk(2 * dist.get_world_size())
    return torch.cat([chunks[rank], chunks[-1 - rank]])


def ring_attention(q, k, v, length):
    """Causal attention of this rank's queries to all keys, in float32; (heads, tokens of the rank, width)."""
    rank, size, kv, out = dist.get_rank(), dist.get_world_size(), torch.stack([k, v]), None
    mine = zig_zag(rank, length, q.device)
    for step in range(size):
        visible = mine[:, None] >= zig_zag((rank - step) % size, length, q.device)
        scores = (q @ kv[0].mT / q.shape[-1] ** 0.5).masked_fill(~visible, -1e9)
        new_lse = scores.logsumexp(-1, keepdim=True)
        new = (scores - new_lse).exp() @ kv[1]
        if out is None:
            out, lse = new, new_lse
        else:
            total = torch.logaddexp(lse, new_lse)
            out, lse = (lse - total).exp() * out + (new_lse - total).exp() * new, total
        if step < size - 1:
            kv = Pass.apply(kv)
    return out


class Exchange(torch.autograd.Function):
    """Rows go to other ranks; backward their gradients return."""

    @staticmethod
    def forward(ctx, rows, send, receive):
        """Send rows, as many to each rank as the counts say."""
        ctx.counts = receive, send
        return swap(rows, send, receive)

    @staticmethod
    def backward(ctx, gradient):
        """Send the gradients back, with the counts swapped round."""
        return swap(gradient, *ctx.counts), None, None


def swap(rows, send, receive):
    """Exchange rows without autograd."""
    arrived = rows.new_empty(sum(receive), *rows.shape[1:])
    dist.all_to_all_single(arrived, rows.contiguous(), receive, send)
    return arrived


def mixture(x, router, expert):
    """Each token visits the expert that the router chooses; rank e owns expert e. (tokens, width)"""
    weight, chosen = router(x).softmax(-1).max(-1)
    order = chosen.argsort(stable=True)
    send = chosen.bincount(minlength=dist.get_world_size())
    receive = torch.empty_like(send)
    dist.all_to_all_single(receive, send)
    send, receive = send.tolist(), receive.tolist()
    arrived = Exchange.apply(x[order], send, receive)
    returned = Exchange.apply(expert(arrived), receive, send)
    return returned[order.argsort()] * weight[:, None]


local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
dist.barrier()  # all ranks together, before the first pair talks
rank, size = dist.get_rank(), dist.get_world_size()
draw = torch.Generator().manual_seed(0)

length = 16 * size
whole = torch.randn(3, 4, length, 16, generator=draw).to(device)
mine = zig_zag(rank, length)
leaves = [part.requires_grad_() for part in whole[:, :, mine]]
ring_attention(*leaves, length).square().sum().backward()
alone = whole.requires_grad_()
F.scaled_dot_product_attention(*alone, is_causal=True).square().sum().backward()
found = torch.stack([leaf.grad for leaf in leaves])
close = [torch.allclose(found, whole.grad[:, :, mine], rtol=1e-3, atol=1e-4)]

x = torch.randn(24 * size, 32, generator=draw).to(device)
torch.manual_seed(0)  # all ranks draw all experts, and use one
router = torch.nn.Linear(32, size).to(device)
experts = [torch.nn.Linear(32, 32).to(device) for _ in range(size)]
part = x.chunk(size)[rank].clone().requires_grad_()
mixture(part, router, experts[rank]).square().sum().backward()
own, shared = experts[rank].weight.grad.clone(), router.weight.grad.clone()
dist.all_reduce(shared)  # all ranks have the router; the expert has had the tokens of all ranks, so it needs no sum
router.zero_grad()
experts[rank].zero_grad(set_to_none=False)  # an expert that no token chooses has zeros
x.requires_grad_()
weight, chosen = router(x).softmax(-1).max(-1)
visited = torch.stack([experts[number](token) for number, token in zip(chosen.tolist(), x, strict=True)])
(visited * weight[:, None]).square().sum().backward()
pairs = [(own, experts[rank].weight.grad), (shared, router.weight.grad), (part.grad, x.grad.chunk(size)[rank])]
close += [torch.allclose(one, other, rtol=1e-3, atol=1e-4) for one, other in pairs]

alike = torch.tensor(close, dtype=torch.int32, device=device)
dist.all_reduce(alike, dist.ReduceOp.MIN)
if rank == 0:
    print(f"gradients of the ring as in one process: {bool(alike[0])}")
    print(f"gradients of the experts as in one process: {bool(alike[1])}")
    print(f"gradients of the router as in one process: {bool(alike[2])}")
    print(f"gradients of the tokens as in one process: {bool(alike[3])}")
dist.destroy_process_group()
raise SystemExit(not alike.all())
