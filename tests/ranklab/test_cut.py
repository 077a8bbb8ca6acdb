"""What ends a wait: only the group's connections are cut, and NCCL's groups are aborted."""

import json
import re
import subprocess
import sys

import pytest

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


PROGRAMS = {
    "the notebook's connections": """
print(cut(kept))
print(theirs.recv(1))
ours.send(b"x")
print(dist.is_initialized())
dist.destroy_process_group()
""",
    "a group that has nccl": """
state._world.pg_backend_config[dist.group.WORLD] = "cpu:gloo,cuda:nccl"
cut(kept)
print(dist.is_initialized(), state._world.group_count)
dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
print(dist.get_world_size())
dist.destroy_process_group()
""",
    "an abort that hangs": """
state._world.pg_backend_config[dist.group.WORLD] = "cpu:gloo,cuda:nccl"
never, began = threading.Event(), threading.Event()
state._abort_process_group = lambda: (began.set(), never.wait())
print(cut(kept), began.is_set())
never.set()
dist.destroy_process_group()
""",
}
# Each in a process of its own, where a group may be aborted, forked from one that has imported torch.
ALL = """
import json, os, sys
import torch.distributed as dist
import ranklab.rank.cut
begin, programs = json.loads(sys.stdin.read())
for name, program in programs.items():
    print(name, flush=True)
    child = os.fork()
    if not child:
        try:
            exec(begin + program)
        except BaseException as error:
            print(repr(error))
        finally:
            sys.stdout.flush()
            os._exit(0)
    print("status", os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def said():
    """The lines of each program."""
    words = json.dumps([PROGRAM, PROGRAMS])
    done = subprocess.run([sys.executable, "-c", ALL], input=words, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    told = re.split(rf"^({'|'.join(PROGRAMS)})\n", done.stdout, flags=re.MULTILINE)[1:]
    return dict(zip(told[::2], map(str.splitlines, told[1::2]), strict=True))


def test_the_notebooks_connections_stay(said):
    assert said["the notebook's connections"] == ["1", "b''", "True", "status 0"]


def test_a_group_that_has_nccl_is_aborted_and_can_be_made_again(said):
    assert said["a group that has nccl"] == ["False 0", "1", "status 0"]


def test_an_abort_that_hangs_does_not_hold_the_watchdog(said):
    assert said["an abort that hangs"] == ["1 True", "status 0"]
