"""``%%px``: cells that other people's programs have and the chapters do not; each was told wrongly once."""

import pytest

from ranklab.errors import RankError, RankTimeout, WorldError

SETUP = """
import os, time, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
if not dist.is_initialized():
    dist.init_process_group("gloo")
x = torch.zeros(4)
"""


@pytest.fixture(autouse=True)
def group(notebook):
    shown = notebook.px(SETUP)
    assert shown.error is None, shown


def hangs(notebook, cell, seconds=2):
    """What is shown of a cell that has to be freed."""
    shown = notebook.px(cell, f"--timeout {seconds}")
    assert isinstance(shown.error, RankTimeout), shown
    return shown.text


def test_await_is_refused_at_once_and_variables_stay(notebook):
    notebook.px("kept = 7")
    shown = notebook.px("import asyncio\nawait asyncio.sleep(0)")
    assert isinstance(shown.error, RankError) and "'await' outside function" in shown.text
    assert notebook.px("print(kept)").text == "ranks 0–3   7"


def test_what_a_fork_of_a_rank_prints_is_shown(notebook):
    cell = """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=print, args=("from the child of", rank))
child.start()
child.join()
"""
    text = notebook.px(cell).text
    assert all(f"from the child of {rank}" in text for rank in range(4)), text


def test_a_loop_that_prints_takes_no_memory(notebook):
    memory = "import psutil\nbefore = psutil.Process().memory_info().rss"
    notebook.px(memory)
    text = hangs(notebook, "while True: print(list(range(2000)))", 3)
    assert "still at work, and wait" in text and "_tee" not in text
    notebook.px("grown = psutil.Process().memory_info().rss - before")
    assert notebook.run("grown = world.pull('grown')").error is None
    assert max(notebook.names["grown"]) < 60e6, notebook.names["grown"]


def test_a_value_of_a_class_that_only_the_ranks_know(notebook):
    notebook.px("class Result: pass\nresult = Result()")
    error = notebook.run("world.pull('result')").error
    assert (
        isinstance(error, WorldError) and "Can't get attribute 'Result'" in str(error) and "%%px --local" in str(error)
    )


def test_what_is_pulled_is_what_the_ranks_have(notebook):
    notebook.px("import numpy\nvalue = {'a': numpy.arange(rank + 1), 't': torch.ones(rank), 'b': 0}")
    notebook.px("array = numpy.arange(4.0)[::2]\ndef add(x): return x + 1")
    told = notebook.run("values, arrays, adds = world.pull('value'), world.pull('array'), world.pull('add')")
    assert told.error is None and [add(1) for add in notebook.names["adds"]] == [2] * 4
    for number, value in enumerate(notebook.names["values"]):
        assert value["a"].tolist() == list(range(number + 1)) and len(value["t"]) == number
        assert list(value) == ["a", "t", "b"]
    assert [array.tolist() for array in notebook.names["arrays"]] == [[0.0, 2.0]] * 4


def test_pxresult_shows_the_report_of_a_hang_again(notebook):
    told = notebook.px("if rank == 0: dist.all_reduce(x)", "--timeout 2")
    again = notebook.run("get_ipython().run_line_magic('pxresult', '')")
    assert str(again.error) == str(told.error) and again.text == told.text
    notebook.px(SETUP)


def test_the_report_of_a_death_says_who_loses_variables(notebook):
    notebook.px("kept = 7")
    text = notebook.px("import os\nos._exit(1)", "--ranks 1").text
    assert "The next cell starts rank 1 again, without variables; the others keep theirs." in text
    assert notebook.px("print('kept' in globals())").text.splitlines() == [
        "ranks 0, 2, 3   True",
        "rank 1          False",
    ]


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (
            "if rank == 0: dist.new_group([0, 1])",
            "rank 0 waits in new_group for ranks 1–3, which finished the cell without",
        ),
        (
            "if rank != 1: dist.monitored_barrier()",
            "ranks 0, 2, 3 wait in monitored_barrier for rank 1, which finished",
        ),
        ("if rank == 1: dist.recv_object_list([None], src=0)", "rank 1 receives from rank 0, which sends nothing"),
        (
            "g = dist.new_group([2, 3])\nif rank == 3: dist.recv(x, group=g, group_src=0)",
            "rank 3 receives from rank 2, which sends nothing",
        ),
        (
            "y = torch.randn(500, 500)\nif rank == 1:\n    while True: torch.softmax(y @ y, 1)\ndist.all_reduce(x)",
            "rank 1 may be in an endless loop, or have more work than the deadline allows",
        ),
        (
            "m = torch.nn.Linear(500, 500)\nif rank == 1:\n    while True: m(torch.ones(500, 500))\ndist.all_reduce(x)",
            "rank 1 may be in an endless loop, or have more work than the deadline allows",
        ),
        (
            "if rank == 0: dist.recv(x, src=1)\nif rank == 1:\n    time.sleep(60)\n    dist.send(x, dst=0)",
            "or rank 1 has more work before it than the deadline allows",
        ),
        (
            "for step in range(100 if rank == 1 else 101): dist.all_reduce(x)",
            "finished the cell after at least 64 collectives",
        ),
    ],
)
def test_who_waits_for_whom(notebook, cell, told):
    assert told in hangs(notebook, cell, 3).replace("\n", " ")


def test_streams_that_a_cell_has_closed_carry_what_later_cells_print(notebook):
    assert notebook.px("import sys\nsys.stdout.close()\nsys.stderr.close()\nos.close(1)\nos.close(2)").text == ""
    assert notebook.px("print('later')").text == "ranks 0–3   later"
    assert notebook.px("_ = os.system('echo by a child')").text == "ranks 0–3   by a child"
