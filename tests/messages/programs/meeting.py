"""Ranks that do not find one another."""

import os
import socket
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from .. import stage
from . import meet


def closed_port():
    """Return a port of this machine on which nobody listens for as long as the socket lives."""
    kept = socket.socket()
    kept.bind(("127.0.0.1", 0))
    return kept, kept.getsockname()[1]


@stage.program()
def plain_python(rank):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        os.environ.pop(name, None)
    dist.init_process_group("gloo")


@stage.program()
def no_address(rank):
    os.environ.pop("MASTER_ADDR", None)
    dist.init_process_group("gloo")


@stage.program()
def no_local_rank(rank):
    del os.environ["LOCAL_RANK"]
    print(int(os.environ["LOCAL_RANK"]))


@stage.program()
def port_in_use(rank):
    both = socket.has_dualstack_ipv6()
    taken = socket.create_server(("", 0), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(taken.getsockname()[1])}
    dist.init_process_group("gloo")


@stage.program()
def nobody_listens(rank):
    _kept, port = closed_port()
    os.environ |= {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", timeout=timedelta(seconds=2))


@stage.program()
def unknown_name(rank):
    os.environ |= {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "node0.invalid", "MASTER_PORT": "29500"}
    dist.init_process_group("gloo", timeout=timedelta(seconds=2))


@stage.program()
def a_rank_is_missing(rank):
    store = dist.TCPStore("127.0.0.1", 0, 2, is_master=True, timeout=timedelta(seconds=2))
    print(store)


@stage.program()
def a_key_that_nobody_sets(rank):
    store = dist.TCPStore("127.0.0.1", 0, 1, is_master=True, timeout=timedelta(seconds=1))
    store.get("the answer")


@stage.program()
def twice(rank):
    meet()
    meet()


@stage.program()
def no_group(rank):
    dist.all_reduce(torch.ones(1))


@stage.program()
def ended_twice(rank):
    meet()
    dist.destroy_process_group()
    dist.destroy_process_group()


@stage.program()
def misspelt_backend(rank):
    meet(backend="glo")


@stage.program()
def no_nccl(rank):
    meet(backend="nccl")


@stage.program()
def rank_beyond_the_world(rank):
    place = f"file://{os.getcwd()}/meeting"
    dist.init_process_group("gloo", init_method=place, rank=2, world_size=2, timeout=timedelta(seconds=1))


@stage.program()
def wrong_interface(rank):
    os.environ["GLOO_SOCKET_IFNAME"] = "eth77"
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meeting", rank=0, world_size=1)


@stage.program(ranks=2)
def new_group_beyond_the_world(rank):
    meet()
    dist.new_group([0, 2])


@stage.program(ranks=2)
def new_group_too_large(rank):
    meet()
    dist.new_group([0, 1, 2])


@stage.program(ranks=2)
def group_of_others(rank):
    meet()
    group = dist.new_group([0])
    if rank == 1:
        dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()


@stage.program(ranks=2)
def root_of_another_group(rank):
    meet()
    group = dist.new_group([0, 1])
    dist.barrier()  # rank 0 must not leave while rank 1 still connects to it
    if rank == 1:
        dist.broadcast(torch.ones(1), src=5, group=group)


@stage.program()
def mesh_too_large(rank):
    meet()
    dist.init_device_mesh("cpu", (4,))


@stage.program()
def mesh_dimension_unknown(rank):
    meet()
    dist.init_device_mesh("cpu", (1,), mesh_dim_names=("dp",))["tp"]


@stage.program(ranks=2)
def only_one_makes_the_group(rank):
    meet()
    if rank == 0:
        dist.new_group([0, 1], timeout=timedelta(seconds=1))
    else:
        time.sleep(3)


@stage.program(ranks=2)
def store_gone(rank):
    told = Path("port")
    if rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        Path("part").write_text(str(store.port))
        os.rename("part", told)
        while not Path("connected").exists():
            time.sleep(0.02)
        return
    while not told.exists():
        time.sleep(0.02)
    store = dist.TCPStore("127.0.0.1", int(told.read_text()))
    Path("connected").touch()
    while True:  # as NCCL's monitor asks, again and again
        store.check(["a key"])
        time.sleep(0.1)
