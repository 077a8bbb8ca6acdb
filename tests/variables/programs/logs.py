"""Ranks that record or check different things."""

import json
import os

import torch
import torch.distributed as dist

from tests.messages import stage

from . import meet, say, tell


@stage.program(2)
def one_checks(rank):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = ("OFF", "DETAIL")[rank]
    dist.set_debug_level_from_env()  # torch read the variable when it was imported
    tell(rank)


def recorded(rank, **others):
    meet(rank, **others)
    for _ in range(9):
        dist.all_reduce(torch.ones(1))
    entries = json.loads(torch._C._distributed_c10d._dump_fr_trace_json()).get("entries", [])
    say(f"process {rank}: recorded {len(entries)} of 9 calls")


@stage.program(2)
def other_buffer(rank):
    recorded(rank, TORCH_FR_BUFFER_SIZE=("4", "0")[rank])


@stage.program(2)
def default_buffer(rank):
    recorded(rank, TORCH_FR_BUFFER_SIZE=None)


@stage.program(2)
def old_name(rank):
    recorded(rank, TORCH_FR_BUFFER_SIZE=None, TORCH_NCCL_TRACE_BUFFER_SIZE="4")
