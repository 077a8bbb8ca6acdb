"""A pipeline: a model cut into stages, one a rank, and three orders in which micro-batches pass them.

    pipeline = Pipeline(stage, ranks=[0, 1, 2, 3], width=32)    # on every rank, after init_process_group
    loss = pipeline.step(one_f_one_b, batch, targets, micro=8, loss_of=F.mse_loss)

The chapter *pipelines* builds it, in the same words. Micro-batches have to be equally long, what goes from stage to
stage is one tensor of `rows × width`, and the whole loss is known on the last rank. It is made for gloo: on NCCL a send
and a receive that cross would have to go through `batch_isend_irecv` together.
"""

import time

import torch.distributed as dist


def naive(stage, stages, micro):
    """One micro-batch after the other."""
    return [(what, k) for k in range(micro) for what in "FB"]


def gpipe(stage, stages, micro):
    """All forwards, then all backwards."""
    return [(what, k) for what in "FB" for k in range(micro)]


def one_f_one_b(stage, stages, micro):
    """Some forwards ahead, then one backward, one forward, in turns."""
    ahead = min(stages - stage, micro)
    order = [("F", k) for k in range(ahead)]
    for k in range(micro):
        order += [("B", k)] + [("F", k + ahead)] * (k + ahead < micro)
    return order


class Line:
    """A stage and its place in a line of ranks."""

    def __init__(self, module, ranks, width):
        self.module, self.ranks, self.width = module, ranks, width
        self.stage, self.sent = ranks.index(dist.get_rank()), {}
        self.first, self.last = self.stage == 0, self.stage == len(ranks) - 1


class Messages(Line):
    """Receives, and sends without waiting: the neighbour may be busy."""

    def receive(self, tensor, way):
        """Wait for a tensor of this shape from a neighbour."""
        dist.recv(tensor, self.ranks[self.stage + way])
        return tensor

    def send(self, tensor, way):
        """Send to a neighbour, one message at a time."""
        self.arrive(way)
        self.sent[way] = tensor, dist.isend(tensor, self.ranks[self.stage + way])

    def arrive(self, way):
        """Wait until the last message to a neighbour is there."""
        if way in self.sent:
            self.sent.pop(way)[1].wait()


class Forward(Messages):
    """Goes forward, keeps what backward needs, notes times."""

    def forward(self, k):
        """Take micro-batch k from the left, pass it on to the right."""
        x = self.inputs[k]
        if not self.first:
            x = self.receive(x.new_empty(len(x), self.width), -1).requires_grad_()
        began = time.time()
        y = self.module(x)
        if self.last:
            y = self.loss_of(y, self.targets[k]) / len(self.inputs)
            self.loss += y.item()
        self.stored[k] = x, y
        self.events.append(("F", k, began, time.time()))
        if not self.last:
            self.send(y.detach(), +1)


class Backward(Forward):
    """Goes backward as well."""

    def backward(self, k):
        """Take its gradient from the right, pass it on to the left."""
        x, y = self.stored[k]
        gradient = None if self.last else self.receive(y.new_empty(y.shape), +1)
        began = time.time()
        y.backward(gradient)
        del self.stored[k]
        self.events.append(("B", k, began, time.time()))
        if not self.first:
            self.send(x.grad, -1)


class Pipeline(Backward):
    """Follows a schedule."""

    def step(self, schedule, batch, targets, micro, loss_of):
        """Add up the gradients of a batch; return its loss (last stage)."""
        self.inputs, self.targets = batch.chunk(micro), targets.chunk(micro)
        self.loss_of, self.loss, self.peak = loss_of, 0.0, 0
        self.stored, self.events = {}, []
        for what, k in schedule(self.stage, len(self.ranks), micro):
            self.forward(k) if what == "F" else self.backward(k)
            self.peak = max(self.peak, len(self.stored))
        self.arrive(+1)
        self.arrive(-1)
        return self.loss
