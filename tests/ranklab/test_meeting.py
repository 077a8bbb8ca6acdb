"""The place where ranks meet: each group in a store of its own, however short the last one lived."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from support import steady

from ranklab.cells.recovery import regroup

HEAD = """
import os, socket, time
import torch
import torch.distributed as dist
rank = int(os.environ["RANK"])
"""
ROUND = """
dist.init_process_group({arguments})
x = torch.ones(1)
dist.all_reduce(x)
{before}
dist.destroy_process_group()
"""
BURN = [sys.executable, "-c", "while True: pass"]


@contextlib.contextmanager
def busy(count: int):
    """Keep the processors of this machine busy with other things."""
    burning = [subprocess.Popen(BURN) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def rounds(count: int, arguments: str = "", before: str = "") -> str:
    """Return a cell that makes, uses and destroys a group several times."""
    return HEAD + ROUND.format(arguments=arguments, before=before) * count + "print(x.item())\n"


def met(shown) -> bool:
    """Say whether every rank has added up; torch may log on stderr that a server was ending while it knocked."""
    return shown.error is None and shown.text.startswith("ranks 0–3   4.0")


@pytest.mark.parametrize("burning", [0, 6])
def test_a_group_made_and_destroyed_in_a_cell_does_not_spoil_the_next(notebook, burning):
    with busy(burning):
        for _ in range(20):
            regroup(notebook.names["world"].processes)  # as after a start: the store is opened before the ranks come
            shown = notebook.px(rounds(2), "--timeout 120")
            assert met(shown), shown


SMALL = """
dist.init_process_group()
pair = dist.new_group([3, 1])
x = torch.tensor(10 * rank)
if rank in (1, 3):
    dist.broadcast(x, src=1, group=pair)
dist.barrier()
dist.destroy_process_group()
"""


def test_a_small_group_and_then_the_end_of_all_hold_on_a_busy_machine(notebook):
    """As in *meeting-up*: who is not in the small group has nothing to do, and must not leave before the others."""
    with busy(6):
        shown = notebook.px(HEAD + SMALL * 10, "--timeout 120")
    assert shown.error is None, shown
    assert [x.item() for x in notebook.names["world"].pull("x")] == [0, 10, 20, 10]


def test_a_rank_that_comes_back_before_rank_0_has_left_meets_in_the_next_store(notebook):
    cell = rounds(3, before="time.sleep(0.5 if rank == 0 else 0)")
    shown = notebook.px(cell, "--timeout 120")
    assert met(shown), shown


def test_a_group_can_be_made_again_while_a_model_still_holds_the_last_one(notebook):
    held = "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))\nmodel(torch.ones(1, 2))"
    shown = notebook.px(HEAD + "dist.init_process_group()\n" + held, "--timeout 120")
    assert shown.error is None, shown
    again = "dist.destroy_process_group()\ndist.init_process_group()\nx = torch.ones(1)\ndist.all_reduce(x)\n"
    for _ in range(3):
        shown = notebook.px(f"{again}{held}\nprint(x.item())", "--timeout 120")
        assert met(shown), shown
    notebook.px("dist.destroy_process_group()\ndel model", "--timeout 120")


def test_a_url_that_names_the_port_of_rank_0_is_met_at_as_well(notebook):
    url = "'gloo', 'tcp://127.0.0.1:' + os.environ['MASTER_PORT'], rank=rank, world_size=4"
    regroup(notebook.names["world"].processes)
    shown = notebook.px(rounds(2, arguments=url), "--timeout 120")
    assert met(shown), shown


def test_the_store_ends_with_the_group_that_met_in_it(notebook):
    world = notebook.names["world"]
    regroup(world.processes)
    knock = f"print(socket.socket().connect_ex(('127.0.0.1', {world.processes.master_port})) == 0)\n"
    shown = notebook.px(HEAD + knock, "--ranks 0")
    assert shown.text == "rank 0   True", shown
    # A second later rank 0 has left, too.
    shown = notebook.px(rounds(1) + "time.sleep(1)\n" + knock, "--ranks all --timeout 120")
    assert shown.text == "ranks 0–3   4.0\n            False", shown


def test_a_meeting_that_failed_leaves_no_store_to_the_next(notebook):
    failing = (
        "from datetime import timedelta\n"
        "try:\n"
        "    if rank != 3:\n"
        "        dist.init_process_group(timeout=timedelta(seconds=2))\n"
        "except dist.DistError as error:\n"
        "    print(str(error).replace('ms', ' ms').split(' ')[0])\n"
        "dist.distributed_c10d._world.group_count = 0\n"
    )
    regroup(notebook.names["world"].processes)
    shown = notebook.px(HEAD + failing, "--timeout 120")
    assert shown.error is None, shown
    shown = notebook.px(rounds(2), "--timeout 120")
    assert met(shown), shown


def test_a_meeting_that_nobody_else_comes_to_is_told_as_ever(notebook):
    regroup(notebook.names["world"].processes)
    shown = notebook.px(HEAD + "if rank != 3:\n    dist.init_process_group()", "--timeout 3")
    assert "ranks 0–2 wait in init_process_group for rank 3" in steady(shown.text), shown
    assert "ranklab" not in shown.text + shown.html.replace('class="ranklab', "")
