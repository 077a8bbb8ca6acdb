"""The meter: every operation by its public name, exact bytes, and the wire by the kernel's count."""

import os
import socket
import struct
import subprocess
import sys
import textwrap

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import ranklab
from ranklab.errors import WorldError
from ranklab.rank.meter import BATCH, GROUPS, NO_COMMUNICATION, OPERATIONS, on_tcp
from ranklab.system.backends import on_host, sharing

WIRE = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux counts the bytes of a connection")


@pytest.fixture(scope="module")
def group(notebook):
    """Four ranks in a group."""
    cell = "import torch, torch.distributed as dist, ranklab\nrank, size = dist.get_rank(), dist.get_world_size()"
    assert (
        notebook.px(cell.replace("\n", "\nif not dist.is_initialized(): dist.init_process_group('gloo')\n")).error
        is None
    )
    return notebook


def test_the_meter_does_not_import_what_compiles():
    """It took a second of processor and 70 MB a rank, within the deadline of a grader."""
    program = """
        import sys, torch, torch.distributed as dist, ranklab
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        for compiled in (False, True):
            with ranklab.meter() as meter:
                dist.all_reduce(torch.ones(2))
                dist.all_reduce(torch.ones(2))
            print(dict(meter.calls), "torch._dynamo" in sys.modules)
            import torch._dynamo
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "RANK": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines() == ["{'all_reduce': 2} False", "{'all_reduce': 2} True"]


def counted(group, block: str) -> list[dict]:
    """Run a block under a meter on every rank; return what each meter has."""
    lines = "\n".join(f"    {line}" for line in block.splitlines())
    cell = (
        "x = torch.ones(6)\nwith ranklab.meter() as meter:\n" + lines + "\n"
        "told = {'calls': dict(meter.calls), 'payload': dict(meter.payload), 'messages': meter.messages, "
        "'wire': meter.wire, 'why': meter.why, 'text': str(meter)}"
    )
    shown = group.px(cell)
    assert shown.error is None, shown.text
    return group.names["world"].pull("told")


ONE_CALL = {
    "all_reduce": ("dist.all_reduce(x)", 24),
    "broadcast": ("dist.broadcast(x, 0)", 24),
    "reduce": ("dist.reduce(x, 0)", 24),
    "all_gather": ("dist.all_gather([torch.zeros(6) for _ in range(size)], x)", 24),
    "all_gather_single": ("dist.all_gather_single(torch.zeros(6 * size), x)", 24),
    "reduce_scatter": ("dist.reduce_scatter(torch.zeros(6), [x] * size)", 96),
    "reduce_scatter_single": ("dist.reduce_scatter_single(torch.zeros(6), x.repeat(size))", 96),
    "all_to_all": ("dist.all_to_all([torch.zeros(6) for _ in range(size)], [x] * size)", 96),
    "all_to_all_single": ("dist.all_to_all_single(torch.zeros(8), torch.zeros(8))", 32),
    "gather": ("dist.gather(x, [torch.zeros(6) for _ in range(size)] if rank == 0 else None)", 24),
    "barrier": ("dist.barrier()", 0),
    "monitored_barrier": ("dist.monitored_barrier()", 0),
}


@pytest.mark.parametrize("name", ONE_CALL)
def test_a_collective_is_counted_once_with_its_bytes(group, name):
    block, size = ONE_CALL[name]
    for told in counted(group, block):
        assert told["calls"] == {name: 1}
        assert told["payload"] == {name: size}
        assert told["messages"] == 0


def test_a_scatter_is_paid_for_by_its_source(group):
    told = counted(group, "dist.scatter(x, [x] * size if rank == 0 else None)")
    assert [each["payload"]["scatter"] for each in told] == [96, 0, 0, 0]


def test_what_is_sent_without_waiting_counts_as_sent(group):
    block = "sent = dist.isend(x, (rank + 1) % size)\ndist.recv(torch.zeros(6), (rank - 1) % size)\nsent.wait()"
    for told in counted(group, block):
        assert told["calls"] == {"send": 1, "recv": 1} and told["payload"] == {"send": 24, "recv": 24}
        assert told["messages"] == 1


def test_what_ddp_does_from_c_is_seen(group):
    group.px("model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 5))")
    for told in counted(group, "model(torch.ones(2, 3)).sum().backward()"):
        assert told["calls"]["all_reduce"] == 1
        assert told["payload"]["all_reduce"] == 4 * (15 + 5)


FUNCTIONAL = {
    "all_reduce": ("fc.all_reduce(x, 'sum', dist.group.WORLD) + 0", 24),
    "all_reduce_coalesced": ("fc.all_reduce_coalesced([x, x], 'sum', dist.group.WORLD)", 48),
    "broadcast": ("fc.broadcast(x, 0, dist.group.WORLD) + 0", 24),
    "all_gather_single": ("torch.ops._c10d_functional.all_gather_into_tensor(x, size, name)", 24),
    "reduce_scatter_single": ("torch.ops._c10d_functional.reduce_scatter_tensor(x.repeat(2), 'sum', size, name)", 48),
    "all_to_all_single": ("fc.all_to_all_single(torch.zeros(8), None, None, dist.group.WORLD) + 0", 32),
}


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_a_functional_collective_is_counted_once_with_its_bytes(group, name):
    block, size = FUNCTIONAL[name]
    group.px("import torch.distributed._functional_collectives as fc\nname = dist.group.WORLD.group_name")
    for told in counted(group, block):
        assert told["calls"] == {name: 1} and told["payload"] == {name: size}


def test_a_functional_batch_of_messages_counts_as_its_messages(group):
    batch = "['isend', 'irecv'], [(rank + 1) % size, (rank - 1) % size], [0, 0], [x, x.clone()], dist.group.WORLD"
    group.px("import torch.distributed._functional_collectives as fc")
    for told in counted(group, f"[part + 0 for part in fc.batch_p2p_ops_inplace({batch})]"):
        assert told["calls"] == {"send": 1, "recv": 1} and told["payload"] == {"send": 24, "recv": 24}


MESH = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor, DTensor
mesh = init_device_mesh("cpu", (size,))
rows, columns = (distribute_tensor(torch.ones(8, 4), mesh, [Shard(dim)]) for dim in (0, 1))
"""
WITH_DTENSORS = {
    "rows.full_tensor()": ("all_gather_single", 32),
    "DTensor.from_local(x, mesh, [Partial()]).redistribute(mesh, [Replicate()]).to_local() + 0": ("all_reduce", 24),
    "(columns @ columns.T).full_tensor()": ("all_reduce", 256),
    "columns.redistribute(mesh, [Shard(0)])": ("all_gather_single", 32),
    "distribute_tensor(torch.ones(8), mesh, [Shard(0)])": ("scatter", None),
}


@pytest.mark.parametrize("block", WITH_DTENSORS)
def test_what_a_dtensor_needs_is_seen(group, block):
    assert group.px(MESH).error is None
    name, size = WITH_DTENSORS[block]
    for told in counted(group, block):
        assert told["calls"] == {name: 1}
        assert size is None or told["payload"] == {name: size}


def test_fully_sharded_layers_are_counted_as_before(group):
    group.px(MESH + "from torch.distributed.fsdp import fully_shard\n")
    group.px("layer = torch.nn.Linear(4, 4)\nfully_shard(layer, mesh=mesh)")
    for told in counted(group, "layer(torch.ones(2, 4)).sum().backward()"):
        assert told["calls"] == {"all_gather_single": 1, "reduce_scatter_single": 1}


def test_nothing_is_told_as_nothing(group):
    for told in counted(group, "x.add_(1)"):
        assert told["calls"] == {} and told["text"].splitlines()[0] == "no call"


def test_the_words_of_a_meter(group):
    for told in counted(group, "dist.all_reduce(x)\ndist.all_reduce(x)\ndist.barrier()"):
        assert told["text"].splitlines()[:2] == ["all_reduce: 2 calls, 48 bytes", "barrier: 1 call, 0 bytes"]


@WIRE
@pytest.mark.parametrize("size", [2, 3, 4])
def test_gloos_all_reduce_costs_what_a_ring_costs(group, size):
    """2 (N − 1) / N of the tensor leaves each rank; within 1 % from 4 MB on."""
    block = f"if rank < {size}: dist.all_reduce(big, group=part)"
    assert group.px(f"part = dist.new_group(range({size}))\nbig = torch.ones(1_200_000)\n{block}").error is None
    told = counted(group, block)
    for each in told[:size]:
        assert each["wire"] / 4.8e6 == pytest.approx(2 * (size - 1) / size, rel=0.01)
    assert all(each["wire"] == 0 for each in told[size:])


@WIRE
def test_a_message_costs_its_bytes_and_a_little_more(group):
    cell = "big = torch.ones(1_000_000)"
    assert group.px(cell).error is None
    block = "sent = dist.isend(big, (rank + 1) % size)\ndist.recv(big.clone(), (rank - 1) % size)\nsent.wait()"
    for told in counted(group, block):
        assert 4e6 < told["wire"] < 4e6 * 1.001


def test_connections_that_close_in_the_block_take_their_count_with_them(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    counts = iter([{1: 500, 2: 300}, {1: 900}])
    monkeypatch.setattr(sys.modules["ranklab.rank.meter"], "written", lambda ours: next(counts))
    with ranklab.meter() as meter:
        pass
    assert meter.wire is None and meter.why == "1 connection to another rank was closed in the block."


@WIRE
def test_a_connection_that_is_reset_while_it_is_read_is_gone(monkeypatch):
    import ranklab.rank.wire as wire

    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        theirs, _ = server.accept()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        with pytest.raises(ConnectionResetError):
            ours.recv(1)
        monkeypatch.setenv("MASTER_PORT", "1")
        monkeypatch.setattr(wire, "connections", lambda: [(1, ours)])
        assert wire.written() == {}


def test_another_system_says_that_it_does_not_count(group):
    block = "import ranklab.rank.wire as wire\nplatform, wire.sys = wire.sys, type('S', (), {'platform': 'darwin'})\n"
    for told in counted(group, block + "dist.all_reduce(x)"):
        assert (
            told["wire"] is None and told["why"] == "This system does not count the bytes of a connection; Linux does."
        )
        assert told["text"].endswith("on the wire: unknown. " + told["why"])
    group.px("wire.sys = platform")


def test_the_notebook_is_no_rank():
    with pytest.raises(WorldError, match="The notebook is not a rank"), ranklab.meter():
        pass


def test_every_operation_of_this_torch_has_a_name():
    """A new operation of a later torch would be counted under its inner name, its bytes perhaps wrong."""
    import torch
    import torch.distributed.tensor  # registers the operations of _dtensor

    full_names = (name.split("::") for name in torch._C._dispatch_get_all_op_names())
    names = {name.split(".")[0] for group, name in full_names if group in GROUPS}
    assert names - set(OPERATIONS) - {BATCH} == NO_COMMUNICATION


def test_torchrun_has_the_same_meter(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import torch, torch.distributed as dist, ranklab\n"
        "dist.init_process_group('gloo')\n"
        "x = torch.ones(3_000_000)\n"
        "with ranklab.meter() as meter:\n    dist.all_reduce(x)\n"
        "print(f'{dict(meter.calls)} {round(meter.wire / x.nbytes, 2) if meter.wire else 1.0}\\n', end='')\n"
        "dist.destroy_process_group()\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["{'all_reduce': 1} 1.0"] * 2


@WIRE
@pytest.mark.parametrize(("variables", "known"), [({}, False), (sharing("nccl", 0), True)])
def test_the_bytes_of_a_gpus_tensor_are_known_where_ranks_share_it(monkeypatch, variables, known):
    for name, value in {"RANK": "0", **variables}.items():
        monkeypatch.setenv(name, value)
    with FakeTensorMode():
        tensor = torch.empty(2, device="cuda")
    with ranklab.meter() as meter:
        meter._count("allreduce_", ([tensor],))
    assert (meter.wire is not None) is known and (meter.why == "") is known


@pytest.mark.parametrize(
    ("device", "variables", "counted"),
    [
        ("cpu", {}, True),
        ("cuda", {}, False),
        ("cuda", sharing("nccl", 1), True),
        ("cuda", sharing("nccl", 1) | {"NCCL_IB_DISABLE": "0"}, False),
        ("cuda", on_host("nccl", "node1") | {"LOCAL_WORLD_SIZE": "1"}, True),
        ("cuda", on_host("nccl", "node1") | {"LOCAL_WORLD_SIZE": "2"}, False),  # these two use no socket
        ("xpu", sharing("nccl", 1), False),
    ],
)
def test_where_the_kernel_counts_the_bytes_of_a_tensor(device, variables, counted):
    assert on_tcp(device, variables) is counted
