"""TinyDDP: what DistributedDataParallel does, without buckets. The chapter *tiny-ddp* builds it, in the same words.

    model = TinyDDP(model)    # on every rank, after init_process_group

Not for sparse gradients, nor for a rank that has no gradient at all.
"""

from contextlib import contextmanager
from functools import partial

import torch
import torch.distributed as dist


def copy_from_rank_zero(tensors):
    """Overwrite each tensor with rank 0's."""
    for tensor in tensors:
        sent = tensor.data.contiguous()
        dist.broadcast(sent, src=0)
        tensor.data.copy_(sent)


class TinyDDP(torch.nn.Module):
    """Begins as rank 0's copy; averages gradients while backward runs."""

    def __init__(self, module, find_unused_parameters=False):
        super().__init__()
        self.module, self.find_unused = module, find_unused_parameters
        self.syncing, self.stale, self.listening = True, True, False
        self.used = set()
        shapes = [None] * dist.get_world_size()
        dist.all_gather_object(shapes, [p.shape for p in module.parameters()])
        if any(other != shapes[0] for other in shapes):
            raise RuntimeError("the ranks' parameters differ in number or shape")
        copy_from_rank_zero([*module.parameters(), *module.buffers()])
        self.order = [p for p in module.parameters() if p.requires_grad][::-1]
        for i, p in enumerate(self.order):
            p.register_post_accumulate_grad_hook(lambda _, i=i: self.used.add(i))
            p.register_post_accumulate_grad_hook(partial(self.ready, i))

    def forward(self, *inputs, **named):
        """Bring rank 0's buffers after an exchange; expect the next one."""
        copy_from_rank_zero(self.module.buffers() if self.stale else [])
        self.stale = torch.is_grad_enabled() and self.syncing
        if self.stale:
            self.listening, self.arrived, self.launched = True, set(), []
        return self.module(*inputs, **named)

    def ready(self, place, parameter):
        """Note a complete gradient; launch those whose turn it is."""
        if not self.listening:
            return
        if not self.arrived:
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        self.arrived.add(place)
        while len(self.launched) in self.arrived:
            self.launch(self.order[len(self.launched)].grad)

    def launch(self, gradient):
        """Begin one sum, of gradients divided by their number."""
        share = gradient.detach().contiguous() * (1 / dist.get_world_size())
        self.launched.append((share, dist.all_reduce(share, async_op=True)))

    def finish(self):
        """Make the averages the gradients, except where no rank has one."""
        self.listening, missing = False, self.order[len(self.launched) :]
        if missing and not self.find_unused:
            raise RuntimeError("a parameter received no gradient on this rank")
        for p in missing:
            self.launch(torch.zeros_like(p) if p.grad is None else p.grad)
        sums = zip(self.order, self.used_anywhere(), self.launched, strict=True)
        for p, used, (share, work) in sums:
            work.wait()
            p.grad = share if used else p.grad

    def used_anywhere(self):
        """Say of each parameter whether any rank has used it."""
        used = torch.zeros(len(self.order), device=self.order[0].device)
        used[list(self.used)] = 1
        self.used.clear()
        if self.find_unused:
            dist.all_reduce(used)
        return used.tolist()

    @contextmanager
    def no_sync(self):
        """Accumulate gradients on this rank alone."""
        self.syncing = False
        try:
            yield
        finally:
            self.syncing = True
