"""What ends a wait: only the group's connections are cut, and NCCL's groups are aborted."""

import subprocess
import sys

PROGRAM = """
import socket, sys, threading
import torch.distributed as dist
from ranklab.rank.cut import connections, cut

listener = socket.create_server(("127.0.0.1", 0))
ours = socket.create_connection(listener.getsockname())
kept = {inode for inode, _ in connections()}
dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
state = dist.distributed_c10d
theirs = socket.create_connection(listener.getsockname())
"""


def said_by(program: str) -> list[str]:
    """Run a program in a process of its own, where a group may be aborted; return its lines."""
    done = subprocess.run([sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_notebooks_connections_stay():
    assert said_by("""
print(cut(kept))
print(theirs.recv(1))
ours.send(b"x")
print(dist.is_initialized())
dist.destroy_process_group()
""") == ["1", "b''", "True"]


def test_a_group_that_has_nccl_is_aborted_and_can_be_made_again():
    assert said_by("""
state._world.pg_backend_config[dist.group.WORLD] = "cpu:gloo,cuda:nccl"
cut(kept)
print(dist.is_initialized(), state._world.group_count)
dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
print(dist.get_world_size())
dist.destroy_process_group()
""") == ["False 0", "1"]


def test_an_abort_that_hangs_does_not_hold_the_watchdog():
    assert said_by("""
state._world.pg_backend_config[dist.group.WORLD] = "cpu:gloo,cuda:nccl"
never, began = threading.Event(), threading.Event()
state._abort_process_group = lambda: (began.set(), never.wait())
print(cut(kept), began.is_set())
never.set()
dist.destroy_process_group()
""") == ["1 True"]
