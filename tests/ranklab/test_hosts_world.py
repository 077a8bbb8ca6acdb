"""Ranks on hosts of their own: where they are, what crosses the link, what happens when it is cut."""

import signal
import textwrap
import threading
import uuid

import pytest
from hosting import FORBIDDEN, left, machine, marked, program, spaces
from support import started, stopwatch

from ranklab.errors import RankTimeout, WorldError

MEGABYTES = 4
PREPARE = f"""
import os, socket, time, torch, torch.distributed as dist
if not dist.is_initialized(): dist.init_process_group()
rank, host = int(os.environ["RANK"]), socket.gethostname()
tensor = torch.ones({MEGABYTES * 250_000})

def rate():
    dist.barrier()
    began = time.monotonic()
    dist.all_reduce(tensor)
    return 1.5 * tensor.nbytes * 8 / (time.monotonic() - began)  # 2 (n - 1) / n of the bytes, n = 4
"""


@pytest.fixture(scope="module")
def hosts(bare_notebook):
    """A notebook with two hosts of two ranks each."""
    with started(bare_notebook, 'ranklab.start(nodes=[2, 2], link="100mbit", timeout=20)') as ready:
        yield ready


@pytest.fixture
def group(hosts):
    """The same with a process group, a tensor and a way to measure."""
    for host in hosts.names["world"].hosts:
        host.restore()
        host.rate("100mbit")
    shown = hosts.px(PREPARE)
    assert shown.error is None, shown
    return hosts


def test_ranks_are_on_their_hosts(group):
    shown = group.px("print(host, socket.gethostbyname(host), os.environ['MASTER_ADDR'])")
    first, second = (host.address for host in group.names["world"].hosts)
    assert shown.text.splitlines() == [
        f"ranks 0, 1   computer1 {first} {first}",
        f"ranks 2, 3   computer2 {second} {first}",
    ]


def test_gloo_uses_the_link_and_the_notebook_does_not(group):
    group.px(
        "import psutil\nconnections = [c for c in psutil.Process().net_connections('tcp') if c.raddr]\n"
        "mine = {connection.laddr.ip.removeprefix('::ffff:') for connection in connections}"
    )
    lab = group.names["world"].hosts
    for rank, found in enumerate(group.names["world"].pull("mine")):
        assert found == {lab[rank // 2].address}  # the connections to the notebook are in another network


def test_the_node_map_tells_the_hosts(hosts):
    world = hosts.names["world"]
    world.hosts.rate("100mbit")
    address = world.hosts[1].address
    line = f"node 1   computer2   {address}   100 Mbit/s   rank 2 (local 0)   rank 3 (local 1)"
    assert repr(world).splitlines()[2] == line
    assert f"<small>{address}</small>" in world._repr_html_()
    assert f"MASTER_ADDR={world.hosts[0].address} " in world.commands()


def test_an_all_reduce_takes_what_the_link_allows(group):
    world = group.names["world"]
    group.px("rates = [rate() for _ in range(3)]")
    assert 60e6 < sorted(world.pull("rates")[0])[1] < 120e6
    world.hosts.rate("400mbit")
    group.px("rates = [rate() for _ in range(3)]")
    assert 180e6 < sorted(world.pull("rates")[0])[1] < 480e6


def test_the_rate_changes_while_a_cell_runs(group):
    world = group.names["world"]
    world.hosts.rate("20mbit")
    change = threading.Timer(0.5, world.hosts.rate, ["400mbit"])
    change.start()
    group.px("rates = [rate() for _ in range(4)]")
    change.join()
    rates = world.pull("rates")[0]
    assert rates[0] < rates[-1] / 4


def test_a_cut_cable_hangs_a_collective_and_the_report_names_it(group):
    world = group.names["world"]
    group.run("world.hosts[1].cut()")
    assert "computer2" in repr(world) and "cut" in repr(world)
    clock = stopwatch()
    shown = group.px("dist.all_reduce(tensor)", "--timeout 1")
    assert clock() < 4
    assert isinstance(shown.error, RankTimeout)
    assert "After 1 s: ranks 0–3 wait for messages, and the cable of computer2 is cut." in shown.text
    assert "world.hosts[1].restore() puts the cable back." in shown.text
    group.run("world.hosts[1].restore()")
    shown = group.px("dist.init_process_group(); dist.all_reduce(tensor); print(tensor.numel())")
    assert shown.text == f"ranks 0–3   {MEGABYTES * 250_000}"


def test_a_short_cut_is_bridged_by_tcp(group):
    world = group.names["world"]
    world.hosts[1].cut()
    restore = threading.Timer(0.5, world.hosts[1].restore)
    restore.start()
    shown = group.px("dist.all_reduce(tensor); print('done')", "--timeout 15")
    restore.join()
    assert shown.text == "ranks 0–3   done"


def test_after_a_hang_the_ranks_meet_again_on_another_port(group):
    group.px("kept = rank; before = os.environ['MASTER_PORT']")
    shown = group.px("if rank: dist.barrier()", "--timeout 1")
    assert "ranks 1–3 wait in barrier for rank 0" in shown.text
    shown = group.px(
        "dist.init_process_group(); dist.barrier(); print(kept == rank, os.environ['MASTER_PORT'] != before)"
    )
    assert shown.text == "ranks 0–3   True True"


def test_a_rank_that_dies_is_replaced_on_its_host(group):
    shown = group.px("if rank == 3: os.kill(os.getpid(), 9)")
    assert "rank 3 was killed by SIGKILL" in shown.text
    shown = group.px(PREPARE + "\ndist.all_reduce(tensor); print(host)")
    assert shown.text.splitlines() == ["ranks 0, 1   computer1", "ranks 2, 3   computer2"]


def test_a_restart_keeps_the_rate_and_old_hosts_say_that_they_have_gone(hosts):
    world = hosts.names["world"]
    old = world.hosts
    old[1].rate("50mbit")
    hosts.run("world.restart()")
    assert [str(host.link) for host in world.hosts] == [str(old[0].link), "50 Mbit/s"]
    assert "These hosts have gone" in str(hosts.run("old = world.hosts; world.restart(); old[0].cut()").error)


def test_the_same_start_again_sets_the_rate(hosts):
    shown = hosts.run('ranklab.start(nodes=[2, 2], link="200mbit", timeout=20)')
    assert "Already running: 4 ranks on 2 nodes" in shown.text
    assert {str(host.link) for host in hosts.names["world"].hosts} == {"200 Mbit/s"}
    assert "Call world.stop() first" in str(hosts.run("ranklab.start(nodes=[2, 2])").error)


def test_ranks_whose_hosts_were_killed_are_started_again(hosts):
    world = hosts.names["world"]
    world.hosts._holder.kill()
    world.hosts._holder.wait()
    shown = hosts.px("import socket; print(socket.gethostname())")
    shown = hosts.px("import socket; print(socket.gethostname())") if shown.error else shown
    assert shown.text.splitlines() == ["ranks 0, 1   computer1", "ranks 2, 3   computer2"]


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ('start(4, link="1gbit")', "A link joins nodes on this machine, so name them"),
        ('start(nodes=[2, 2], link="fast")', 'A link has a rate such as "1gbit"'),
        ('start(nodes=[2, 2], delay="2ms")', "A delay is a property of a link"),
        ('start(nodes=[2, 0], link="1gbit")', "at least one rank"),
    ],
)
def test_a_bad_link_is_refused_and_costs_nothing(hosts, call, part):
    hosts.px("kept = 1")
    error = hosts.run(f"ranklab.{call}").error
    assert isinstance(error, WorldError) and part in str(error) and "\n" not in str(error)
    assert hosts.names["world"].pull("kept") == [1] * 4


WORLD = """
    import ranklab, time
    told = []
    import ranklab.engines.network
    ranklab.engines.network.tell = told.append
    world = ranklab.start(nodes=[1, 2], link="100mbit"{options})
    world.view([0, 1, 2]).execute(
        "import socket, torch, torch.distributed as dist; dist.init_process_group(); x = torch.ones(1); "
        "dist.all_reduce(x); found = (socket.gethostname(), x.item())", block=True)
    print(world.pull("found"), flush=True)
    for sentence in told:
        print(sentence)
    print(world.hosts, flush=True)
    {then}
"""


def run_world(folder, user, options="", then="world.stop()"):
    text = textwrap.dedent(WORLD).format(options=options, then=then)
    return program(text, uuid.uuid4().hex, folder, user)


def test_a_world_of_an_ordinary_user(user, folder):
    before = machine()
    with run_world(folder, user) as child:
        said = child.stdout.read().splitlines()
        assert child.wait(300) == 0
    assert said[0] == "[('computer1', 3.0), ('computer2', 3.0), ('computer2', 3.0)]"
    assert list(folder.glob("ranklab-*")) == []
    assert machine() == before


def test_nothing_is_left_of_a_world_whose_owner_is_killed(user, folder):
    before, mark = machine(), uuid.uuid4().hex
    text = textwrap.dedent(WORLD).format(options="", then="time.sleep(600)")
    with program(text, mark, folder, user) as child:
        lines = [child.stdout.readline() for _ in range(3)]
        assert "computer2" in lines[2], lines
        with spaces(marked(mark)) as ours:
            child.send_signal(signal.SIGKILL)
            child.wait(300)
            assert left(mark, ours, folder) == []
    assert machine() == before


def test_where_namespaces_are_forbidden_nodes_share_this_machine(folder):
    with run_world(folder, FORBIDDEN) as child:
        shared, told, error = child.stdout.read().splitlines()
    assert shared.count("3.0") == 3 and "computer" not in shared
    assert told.startswith("This machine allows no network namespaces (")
    assert told.endswith("The nodes share this computer, and the link has no rate.")
    assert error.startswith("no hosts: This machine allows no network namespaces (")


def test_ranks_that_are_not_forked_share_this_machine(folder):
    with run_world(folder, [], ', launcher="spawn"') as child:
        shared, told, _ = child.stdout.read().splitlines()
    assert shared.count("3.0") == 3 and "computer" not in shared
    assert told.startswith("Only ranks that are forked can move to hosts of their own")
