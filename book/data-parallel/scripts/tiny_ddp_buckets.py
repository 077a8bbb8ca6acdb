"""TinyDDP with buckets: one sum for many gradients, cut where torch's DistributedDataParallel cuts.

    model = BucketDDP(model)    # on every rank, after init_process_group

The chapter *buckets* builds it, in the same words. Each gradient becomes a view of its bucket, as torch's
``gradient_as_bucket_view=True`` makes it. Not for sparse gradients, nor for a rank that has no gradient at all.
"""

from collections import Counter

import torch
import torch.distributed as dist
from tiny_ddp import TinyDDP


def group(places, parameters, caps):
    """Cut places into buckets, each full when its parameters *reach* a cap."""
    done, filling, closed = [], {}, Counter()
    for place in places:
        kind = parameters[place].dtype, parameters[place].device
        filling.setdefault(kind, []).append(place)
        held = sum(parameters[other].nbytes for other in filling[kind])
        cap = caps[min(closed[kind], len(caps) - 1)]  # the last cap stays
        if held >= cap:
            done.append(filling.pop(kind))
            closed[kind] += 1
    return done + list(filling.values())


class Bucketed(TinyDDP):
    """Has a flat buffer for each bucket."""

    def cut(self, buckets):
        """Make the flat buffers; each gradient has its part of one."""
        self.buckets, self.flat, self.view = buckets, [], {}
        for places in buckets:
            members = [self.order[place] for place in places]
            lengths = [p.numel() for p in members]
            self.flat.append(members[0].detach().new_empty(sum(lengths)))
            parts = self.flat[-1].split(lengths)
            for place, p, part in zip(places, members, parts, strict=True):
                self.view[place] = part.view(p.shape)


class Filling(Bucketed):
    """Puts gradients into their buckets while backward runs."""

    def fill(self, place):
        """Put one in, divided; launch the buckets whose turn it is."""
        p, view = self.order[place], self.view[place]
        gradient = torch.zeros_like(p) if p.grad is None else p.grad
        torch.mul(gradient.detach(), 1 / dist.get_world_size(), out=view)
        self.arrived[place] = True
        for index in range(len(self.launched), len(self.flat)):
            if any(other not in self.arrived for other in self.buckets[index]):
                break
            self.launched.append(dist.all_reduce(self.flat[index], async_op=True))


class Starting(Filling):
    """Sends all in one bucket, in the first step."""

    def __init__(
        self, module, find_unused_parameters=False, caps=(2**20, 25 * 2**20)
    ):
        super().__init__(module, find_unused_parameters)
        self.caps, self.arrived = caps, {}
        self.awaited = -1 if self.find_unused else len(self.order)
        start = caps if self.find_unused else [float("inf")]
        front = range(len(self.order))[::-1]
        self.cut(sorted(group(front, self.order, start), key=max))


class Rebuilding(Starting):
    """Then sends buckets in rank 0's ready order."""

    def forward(self, *inputs, **named):
        """Rebuild once, when all gradients have arrived in some order."""
        if torch.is_grad_enabled() and len(self.arrived) == self.awaited:
            self.awaited, device = -1, self.order[0].device
            places = torch.tensor([*self.arrived], device=device)
            dist.broadcast(places, src=0)
            self.cut(group(places.tolist(), self.order, self.caps))
        return super().forward(*inputs, **named)


class Hearing(Rebuilding):
    """Runs when autograd has completed a gradient."""

    def ready(self, place, parameter):
        """Put it into its bucket, and remember the order."""
        if self.listening and not self.arrived:
            self.arrived = {}  # keeps the order
            torch.autograd.Variable._execution_engine.queue_callback(self.finish)
        if self.listening:
            self.fill(place)

    def wait(self):
        """Wait for the sums of all buckets."""
        if len(self.launched) < len(self.buckets):
            raise RuntimeError("a parameter received no gradient on this rank")
        for work in self.launched:
            work.wait()


class BucketDDP(Hearing):
    """Makes the parts of the buckets the gradients."""

    def finish(self):
        """Finish the round; a parameter that no rank used stays as it is."""
        self.listening, used = False, self.arrived.copy()
        if self.find_unused:
            here = [float(place in self.used) for place in range(len(self.order))]
            flags = torch.tensor(here, device=self.order[0].device)
            for place in self.view.keys() - used.keys():
                self.fill(place)
            dist.all_reduce(flags)
            used = flags.nonzero().flatten().tolist()
            self.used.clear()
        self.wait()
        for place in used:
            self.order[place].grad = self.view[place]
