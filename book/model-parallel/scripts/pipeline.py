"""A pipeline: a model cut into stages, one per rank, and three orders in which micro-batches pass them.

    dist.barrier()  # once, on all ranks: NCCL connects them in the first call that all of them make
    pipeline = Pipeline(stage, ranks=[0, 1, 2, 3], width=32)
    loss = pipeline.step(one_f_one_b, batch, targets, micro=8, loss_of=F.mse_loss)

The chapter *pipelines* reads it aloud. Micro-batches have to be equally long, what goes from stage to stage is one
tensor of `rows × width` with the type of the batch, and the whole loss is known on the last rank.
"""

import time

import torch
import torch.distributed as dist


def naive(stage, stages, micro):
    """One micro-batch after the other."""
    return [(what, k) for k in range(micro) for what in "FB"]


def gpipe(stage, stages, micro):
    """All forwards, then all backwards."""
    return [(what, k) for what in "FB" for k in range(micro)]


def one_f_one_b(stage, stages, micro):
    """Some forwards ahead, then one backward and one forward in turns."""
    ahead = min(stages - stage, micro)
    order = [("F", k) for k in range(ahead)]
    for k in range(micro):
        order.append(("B", k))
        if k + ahead < micro:
            order.append(("F", k + ahead))
    return order


def now(tensor):
    """Return the time, on a GPU once the work queued there is done."""
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
    return time.time()


class Pipeline:
    """A stage, and its place in a line of ranks."""

    def __init__(self, module, ranks, width):
        self.module, self.ranks, self.width = module, ranks, width
        self.stage, self.stages = ranks.index(dist.get_rank()), len(ranks)
        self.first, self.last = self.stage == 0, self.stage == self.stages - 1

    def step(self, schedule, batch, targets, micro, loss_of):
        """Add up the gradients of a batch; return its loss (last stage)."""
        self.inputs, self.targets = batch.chunk(micro), targets.chunk(micro)
        self.loss_of, self.loss, self.peak = loss_of, 0.0, 0
        self.stored, self.events = {}, []
        order = [*schedule(self.stage, self.stages, micro), ("", 0)]
        arrived = self.exchange("", None, order[0][0])
        for place, (what, k) in enumerate(order[:-1]):
            run = self.forward if what == "F" else self.backward
            leaving = run(k, arrived)
            self.peak = max(self.peak, len(self.stored))
            arrived = self.exchange(what, leaving, order[place + 1][0])
        return self.loss

    def forward(self, k, arrived):
        """Compute micro-batch k; return the activation that leaves."""
        x = self.inputs[k] if self.first else arrived.requires_grad_()
        began = now(x)
        y = self.module(x)
        if self.last:
            y = self.loss_of(y, self.targets[k]) / len(self.inputs)
            self.loss += y.item()
        self.stored[k] = x, y
        self.events.append(("F", k, began, now(x)))
        return None if self.last else y.detach().contiguous()

    def backward(self, k, arrived):
        """Go back through micro-batch k; return the gradient that leaves."""
        x, y = self.stored.pop(k)
        began = now(x)
        y.backward(arrived)  # on the last stage y is the loss, and arrived None
        self.events.append(("B", k, began, now(x)))
        return None if self.first else x.grad

    def exchange(self, done, leaving, following):
        """Hand on what is done and take what follows, in one batch."""
        messages, arrived = [], None
        if leaving is not None:
            neighbour = self.ranks[self.stage + (1 if done == "F" else -1)]
            messages.append(dist.P2POp(dist.isend, leaving, neighbour))
        source = None  # nothing follows the last step
        if following == "F":
            source = self.stage - 1
        elif following == "B":
            source = self.stage + 1
        if source in range(self.stages):  # the ends have one neighbour
            arrived = self.inputs[0].new_empty(len(self.inputs[0]), self.width)
            messages.append(dist.P2POp(dist.irecv, arrived, self.ranks[source]))
        works = dist.batch_isend_irecv(messages) if messages else []
        for work in works:
            work.wait()
        return arrived
