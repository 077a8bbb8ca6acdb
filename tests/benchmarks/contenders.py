"""The programs that are measured: each goes from nothing to the first all_reduce of n ranks, then ends.

Run as ``python -m tests.benchmarks.contenders NAME n``. The last line of its output is JSON: seconds since the
benchmark asked for the program (``RANKLAB_BENCH_BEGAN``, ``time.monotonic`` of this machine) until every rank had
the sum, seconds to stop, and unique and shared megabytes of each rank.
"""

from __future__ import annotations

import json
import os
import sys
import time

BEGAN = "RANKLAB_BENCH_BEGAN"
ALL_REDUCE = """
import os, psutil, torch, torch.distributed as dist
if not dist.is_initialized():
    dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
assert total.item() == dist.get_world_size()
"""
WEIGH = """
memory = psutil.Process().memory_full_info()
weight = [memory.uss / 2**20, (memory.rss - memory.uss) / 2**20]
"""


def since() -> float:
    """Return the seconds since the benchmark asked for this program."""
    return time.monotonic() - float(os.environ[BEGAN])


def say(**figures) -> None:
    """Print the result."""
    print(json.dumps(figures), flush=True)


def ranklab_world(size: int, launcher: str) -> None:
    """Start a world, reduce, weigh, replace a rank, time empty cells, stop."""
    import ranklab

    world = ranklab.start(size, launcher=launcher)
    view = world.view(range(size))
    view.execute(ALL_REDUCE, block=False).get()
    first = since()
    view.execute(WEIGH, block=False).get()
    weights = world.pull("weight")
    cell = empty_cell(lambda: view.execute("pass", silent=False, block=False).wait())
    shell = new_shell()
    from ranklab.magics import register

    register()
    panel = empty_cell(lambda: run_px(shell))
    began = time.monotonic()
    world.processes.signal(size - 1, 9)
    while world.processes.exit_code(size - 1) is None:
        time.sleep(0.001)
    world.processes.replace([size - 1])
    replaced = time.monotonic() - began
    began = time.monotonic()
    world.stop()
    say(first=first, weights=weights, cell=cell, panel=panel, replaced=replaced, stop=time.monotonic() - began)


def new_shell():
    """Return an IPython shell, made when the start has been timed: a notebook has one before ranks start."""
    from IPython.core.interactiveshell import InteractiveShell

    return InteractiveShell.instance()


def run_px(shell) -> None:
    """Run one empty ``%%px`` cell."""
    shell.run_cell("%%px\npass").raise_error()


def stock(size: int) -> None:
    """Do the same with ipyparallel as it is installed."""
    import socket

    import ipyparallel as ipp

    with socket.socket() as probe:  # as ranklab does: bound, not listening, until rank 0 takes it
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        cluster = ipp.Cluster(n=size, log_level=50, load_profile=False, profile_dir=os.environ["BENCH_PROFILE"])
        client = cluster.start_and_connect_sync()
        view = client[:]
        for engine in client.ids:
            environment = {"RANK": engine, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            environment |= {"OMP_NUM_THREADS": 1, "GLOO_SOCKET_IFNAME": "lo"}
            settings = {key: str(value) for key, value in environment.items()}
            client[engine].execute(f"import os; os.environ.update({settings!r})", block=True)
        view.execute(ALL_REDUCE, block=False).get()
        first = since()
    view.execute(WEIGH, block=False).get()
    weights = view.pull("weight", block=True)
    cell = empty_cell(lambda: view.execute("pass", silent=False, block=False).wait())
    shell = new_shell()
    view.block = True
    view.activate()
    panel = empty_cell(lambda: run_px(shell))
    began = time.monotonic()
    client.close()
    cluster.stop_cluster_sync()
    say(first=first, weights=weights, cell=cell, panel=panel, stop=time.monotonic() - began)


def empty_cell(run, times: int = 30) -> float:
    """Return the median seconds of an empty cell."""
    import statistics

    seconds = []
    for _ in range(times):
        began = time.monotonic()
        run()
        seconds.append(time.monotonic() - began)
    return statistics.median(seconds)


def one_of_torchruns() -> None:
    """Be a rank under torchrun."""
    exec(ALL_REDUCE, globals())
    if os.environ["RANK"] == "0":
        say(first=since())
    exec("dist.barrier(); dist.destroy_process_group()", globals())


def spawned(rank: int, size: int, path: str) -> None:
    """Be a rank of torch.multiprocessing."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size)
    dist.all_reduce(torch.ones(1))
    if rank == 0:
        say(first=since())
    dist.destroy_process_group()


def mp_spawn(size: int) -> None:
    """Start ranks with torch.multiprocessing, which meet in a file."""
    import tempfile

    import torch.multiprocessing

    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(spawned, args=(size, f"{folder}/meet"), nprocs=size)


if __name__ == "__main__":
    name, size = sys.argv[1], int(sys.argv[2])
    if name in ("fork", "spawn"):
        ranklab_world(size, name)
    elif name == "stock":
        stock(size)
    elif name == "mp":
        mp_spawn(size)
    else:
        one_of_torchruns()
