"""Ranks on hosts of their own that share a GPU which is only played: what they are told, and that the link is theirs.

No group of the GPUs' backend can be made here. That it keeps to the interface and to the hosts that the ranks are told
is seen on a machine with a GPU.
"""

import json

import pytest
from launches import program as written
from support import started

import ranklab

TOLD = """
import json, os, socket
names = ("RANK", "RANKLAB_SHARED", "CUDA_VISIBLE_DEVICES")
told = {name: value for name, value in os.environ.items() if name in names or name.startswith("NCCL_")}
told["interfaces"] = sorted(name for _, name in socket.if_nameindex())
told["host"] = socket.gethostname()
"""


def on_link(rank, **more):
    host = {"host": f"computer{rank + 1}", "interfaces": ["eth0", "lo"], "RANK": str(rank)}
    return host | {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_DISABLE": "1"} | more


def shared(rank):
    return on_link(rank, RANKLAB_SHARED="1", NCCL_HOSTID=f"rank{rank}")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("CUDA_VISIBLE_DEVICES", "NCCL_SOCKET_IFNAME", "NCCL_HOSTID", "NCCL_IB_DISABLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("gpus", [["GPU-a"], ["GPU-a", "GPU-b"]], ids=["shared", "a GPU each"])
def test_ranks_on_hosts_meet_over_the_link_alone(bare_notebook, gpus_on_this_machine, gpus):
    gpus_on_this_machine(*gpus)
    own = [on_link(rank, NCCL_HOSTID=f"node{rank}", CUDA_VISIBLE_DEVICES=gpu) for rank, gpu in enumerate(gpus)]
    expected = own if len(gpus) == 2 else [shared(0), shared(1)]
    call = 'ranklab.start(nodes=[1, 1], link="1gbit", backend="nccl", timeout=20)'
    with started(bare_notebook, call) as notebook:
        world = notebook.names["world"]
        assert notebook.px(TOLD).error is None
        assert world.backend == "nccl" and world.pull("told") == expected
        world.hosts[1].cut()
        assert "cut" in repr(world)
        world.hosts[1].restore()
        notebook.px("if told['RANK'] == '1': os.kill(os.getpid(), 9)")
        assert notebook.px(TOLD).error is None  # the rank that has died is there again
        assert world.pull("told") == expected
        # The other backend, which a cell may name, uses the same link.
        shown = notebook.px("import torch.distributed as dist; dist.init_process_group('gloo'); dist.barrier()")
        assert shown.error is None, shown
        world.hosts[1].cut()
        assert "cable of computer2 is cut" in notebook.px("dist.barrier()", "--timeout 1").text
        world.hosts[1].restore()
        shown = notebook.px("dist.init_process_group('gloo'); dist.barrier(); print('met')")
        assert shown.text == "ranks 0, 1   met"


def test_torchrun_on_hosts_tells_its_ranks_the_link(monkeypatch, tmp_path, gpus_on_this_machine):
    gpus_on_this_machine("GPU-a")
    monkeypatch.setenv("IPP_NONINTERACTIVE", "1")
    script = written(tmp_path, TOLD + "print(json.dumps(told))")
    with ranklab.hosts(2, link="1gbit") as lab:
        run = ranklab.torchrun(script, nproc_per_node=[1, 1], hosts=lab, backend="nccl", show=False)
        assert run.failure is None, run.failure
        assert [json.loads(text) for text in run.outputs] == [shared(0), shared(1)]
    assert "NCCL_SOCKET_IFNAME=eth0" in run.note and "GPU-a" not in run.note
