"""The functions of the chapter *all-reduce* down to its ring of chunks, for somebody who came late.

Each leaves in its tensor the sum over all ranks, as all_reduce does. A process group has to exist.
"""

import torch
import torch.distributed as dist

import ranklab

rank, size = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % size, (rank - 1) % size
given = torch.rand(1_200, generator=torch.Generator().manual_seed(rank))
results = {}


def measure(way):
    """Run one way on a copy of what the rank was given; keep the sum, and return the meter."""
    tensor = results[way.__name__] = given.clone()
    with ranklab.meter() as meter:
        if rank < size:  # a rank outside a smaller ring only watches
            way(tensor)
    return meter


def everyone(tensor):
    """Each rank sends its tensor to all others, and everybody adds."""
    others = [other for other in range(size) if other != rank]
    sent = [dist.isend(tensor, other) for other in others]
    parts = [torch.empty_like(tensor) for _ in range(size)]
    parts[rank].copy_(tensor)
    for other in others:
        dist.recv(parts[other], other)
    for message in sent:
        message.wait()
    tensor.copy_(sum(parts))


def server(tensor):
    """Rank 0 adds for all and sends the sum back."""
    if rank > 0:
        dist.send(tensor, 0)
        dist.recv(tensor, 0)
        return
    part = torch.empty_like(tensor)
    for sender in range(1, size):
        dist.recv(part, sender)
        tensor += part
    for receiver in range(1, size):
        dist.send(tensor, receiver)


def exchange(out, to, inbox, sender):
    """Send one tensor and receive another at the same time."""
    sent = dist.isend(out, to)
    dist.recv(inbox, sender)
    sent.wait()


def whole_ring(tensor):
    """Pass whole tensors round a ring, and add each to the own one."""
    passing, inbox = tensor.clone(), torch.empty_like(tensor)
    for _ in range(size - 1):
        exchange(passing, right, inbox, left)
        tensor += inbox
        passing, inbox = inbox, passing


def ring_steps(tensor):
    """Send chunk rank - step in each step; yield its number."""
    chunks = tensor.view(size, -1)
    inbox = torch.empty_like(chunks[0])
    for step in range(size - 1):  # reduce-scatter: add
        out, coming = (rank - step) % size, (rank - step - 1) % size
        exchange(chunks[out], right, inbox, left)
        chunks[coming] += inbox
        yield out
    for step in range(size - 1, 2 * (size - 1)):  # all-gather: copy
        out, coming = (rank - step) % size, (rank - step - 1) % size
        exchange(chunks[out], right, chunks[coming], left)
        yield out


def ring(tensor):
    """Sum a tensor in a ring of chunks."""
    for _ in ring_steps(tensor):
        pass
