"""Calls that do not match, ranks that are late or gone, tensors that a collective refuses."""

import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from .. import stage
from . import detail, meet, wait_at_most


@stage.program(ranks=2)
def partner_killed(rank):
    meet()
    told = Path("stopped")
    if rank == 1:
        told.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)  # so that it leaves something unread
    while not (told.exists() and told.read_text()):
        time.sleep(0.02)
    work = dist.isend(torch.ones(1 << 22), 1)
    time.sleep(0.5)
    os.kill(int(told.read_text()), signal.SIGKILL)
    work.wait()


@stage.program(ranks=2)
def partner_late(rank):
    meet()
    wait_at_most(1)
    if rank == 1:
        time.sleep(5)
    dist.all_reduce(torch.ones(1))


@stage.program(ranks=2)
def partner_ended(rank):
    meet()
    waits = Path("waits")
    if rank == 0:
        waits.touch()
        dist.recv(torch.ones(1), 1)
    while not waits.exists():
        time.sleep(0.02)
    time.sleep(1)


@stage.program(ranks=2)
def nobody_receives(rank):
    meet()
    if rank == 0:
        dist.isend(torch.ones(1 << 22), 1).wait(timedelta(seconds=1))
    time.sleep(3)


@stage.program(ranks=2)
def after_a_timeout(rank):
    meet()
    wait_at_most(1)
    if rank == 0:
        try:
            dist.all_reduce(torch.ones(1))
        except RuntimeError:
            dist.all_reduce(torch.ones(1))
    time.sleep(4)


@stage.program(ranks=3)
def late_at_the_monitored_barrier(rank):
    meet()
    if rank == 1:
        time.sleep(4)
    dist.monitored_barrier(timeout=timedelta(seconds=1))


@stage.program(ranks=2)
def other_collective_detail(rank):
    detail()
    meet()
    dist.broadcast(torch.ones(2), 0) if rank else dist.all_reduce(torch.ones(2))


@stage.program(ranks=2)
def other_shape_detail(rank):
    detail()
    meet()
    dist.all_reduce(torch.ones(2 + rank))


@stage.program(ranks=2)
def other_length_broadcast(rank):
    meet()
    wait_at_most(3)
    dist.broadcast(torch.ones(1 if rank else 4), 0)


@stage.program()
def float8(rank):
    meet()
    dist.all_reduce(torch.ones(2).to(torch.float8_e4m3fn))


@stage.program(ranks=2)
def sent_not_contiguous(rank):
    meet()
    if rank == 0:
        dist.send(torch.ones(2, 3).t(), 1)


@stage.program(ranks=2)
def gathered_other_size(rank):
    meet()
    dist.all_gather([torch.ones(3) for _ in range(2)], torch.ones(2))


@stage.program(ranks=2)
def gathered_short_list(rank):
    meet()
    dist.all_gather([torch.ones(2)], torch.ones(2))


@stage.program(ranks=2)
def gathered_other_dtype(rank):
    meet()
    dist.all_gather([torch.ones(2, dtype=torch.int64) for _ in range(2)], torch.ones(2))


@stage.program(ranks=2)
def old_names(rank):
    meet()
    dist.all_gather_into_tensor(torch.ones(4), torch.ones(2))
    dist.reduce_scatter_tensor(torch.ones(1), torch.ones(2))


@stage.program(ranks=2)
def list_on_the_wrong_rank(rank):
    meet()
    if rank == 0:
        dist.scatter(torch.ones(1), None, src=0)
    else:
        dist.gather(torch.ones(1), [torch.ones(1)] * 2, dst=0)


@stage.program(ranks=2)
def scatter_list_given_everywhere(rank):
    meet()
    if rank == 1:
        dist.scatter(torch.ones(1), [torch.ones(1)] * 2, src=0)


@stage.program(ranks=2)
def scatter_sizes(rank):
    meet()
    if rank == 0:
        dist.scatter(torch.ones(2), [torch.ones(2), torch.ones(3)], src=0)


@stage.program()
def not_a_tensor(rank):
    meet()
    dist.all_reduce(3.0)


@stage.program()
def loss_not_a_list(rank):
    meet()
    dist.all_gather(torch.ones(1), torch.ones(1))


@stage.program(ranks=2)
def to_itself(rank):
    meet()
    dist.send(torch.ones(1), rank)


@stage.program(ranks=2)
def to_nobody(rank):
    meet()
    if rank == 1:
        dist.broadcast(torch.ones(1), 7)


@stage.program(ranks=2)
def to_all_splits(rank):
    meet()
    dist.all_to_all_single(torch.ones(4), torch.ones(4), [1, 1], [2, 2])


@stage.program()
def no_backend_for_the_device(rank):
    meet_only_cuda()
    dist.all_reduce(torch.ones(1))


def meet_only_cuda():
    place = f"file://{os.getcwd()}/meeting"
    dist.init_process_group("cuda:gloo", init_method=place, rank=0, world_size=1)


@stage.program()
def through_backward(rank):
    meet()
    weight = torch.ones(2, requires_grad=True)
    out = weight * 2
    dist.all_reduce(out)
    out.sum().backward()


@stage.program()
def bitwise_on_floats(rank):
    meet()
    dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND)


@stage.program()
def object_that_cannot_travel(rank):
    meet()
    dist.broadcast_object_list([(n for n in range(3))], 0)
