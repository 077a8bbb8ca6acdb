"""Ranks that disagree about who they are, or where they meet."""

import os

from tests.messages import stage

from . import PATIENCE, common_port, place, say, tell


@stage.program(2)
def same_rank(rank):
    tell(rank, later=rank == 1, RANK="0")


@stage.program(2)
def other_size(rank):
    tell(rank, WORLD_SIZE=("2", "3")[rank])


@stage.program(2)
def same_local_rank(rank):
    import torch

    place(rank, LOCAL_RANK="0")
    say(f"process {rank}:", torch.device("cuda", int(os.environ["LOCAL_RANK"])))


@stage.program(2)
def other_name(rank):
    tell(rank, PATIENCE, MASTER_ADDR=("127.0.0.1", "localhost")[rank])


@stage.program(2)
def other_port(rank):
    tell(rank, MASTER_PORT=str(common_port(rank) + rank))


@stage.program(2)
def other_store(rank):
    tell(rank, PATIENCE, USE_LIBUV=("0", "1")[rank])


@stage.program(2)
def no_agent(rank):
    tell(rank, TORCHELASTIC_USE_AGENT_STORE=("True", "False")[rank])
