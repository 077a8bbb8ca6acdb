"""Ranks that look for one another over different cables, or in another way."""

from datetime import timedelta

import torch.distributed as dist

from tests.messages import stage

from . import PATIENCE, place, say, tell, watched


@stage.program(2)
def other_interface(rank):
    tell(rank, GLOO_SOCKET_IFNAME=("lo", "nic7")[rank])


@stage.program(2)
def two_interfaces(rank):
    tell(rank, PATIENCE, GLOO_SOCKET_IFNAME="lo,lo")


@stage.program(2)
def other_number(rank):
    tell(rank, GLOO_SOCKET_IFNAME=("lo,lo", "lo")[rank])


@stage.program(2)
def other_transport(rank):
    tell(rank, GLOO_DEVICE_TRANSPORT=("TCP", "TCP_TLS")[rank])


@stage.program(2)
def one_is_lazy(rank):
    watched(lambda: tell(rank, TORCH_GLOO_LAZY_INIT=("0", "1")[rank]))


@stage.program(2)
def one_counts_ranks(rank):
    watched(lambda: tell(rank, GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER=("0", "1")[rank]))


@stage.program(2)
def other_store_calls(rank):
    tell(rank, PATIENCE, GLOO_ENABLE_STORE_V2_API=("0", "1")[rank])


@stage.program()
def excluded(rank):
    place(rank, GLOO_SOCKET_IFNAME="^docker0")
    try:
        dist.init_process_group("gloo", timeout=timedelta(seconds=3))
    except RuntimeError as error:
        say(f"GLOO_SOCKET_IFNAME=^docker0: RuntimeError: {str(error).splitlines()[0]}")
