"""A hang at the end of a cell, among real ranks: their lines have run, and only their device is still at work.

The device is played by what there is without a GPU: calls that come back early (``async_op``), and a ``synchronize``
that waits for them. The recorder, the stacks that it notes and the ways to free a rank are the real ones.
"""

import pytest
from faults_catalogue import RIGHT, SETUP, START

PLAY = """
import dataclasses
from ranklab.rank import queued
from ranklab.system import backends

early = dataclasses.replace(backends.ON_CPUS, stacks="_dump_fr_trace")
backends.BACKENDS = queued.BACKENDS = (early, backends.ON_GPUS)
os.environ[backends.BACKEND] = backends.ON_GPUS.name
works = []
torch.cuda.is_initialized = lambda: True
torch.cuda.device_count = lambda: 1
torch._C._cuda_hasPrimaryContext = lambda index: True
torch.cuda.synchronize = lambda index: [work.wait() for work in works]
"""
EARLY = "works.append(dist.all_reduce(torch.ones(4), async_op=True))"


@pytest.fixture
def early(notebook):
    """A notebook whose ranks have calls that come back early, and a group."""
    shown = notebook.px(f"{SETUP}\n{PLAY}\n{START}\nworks.clear()\nkept = rank", "--timeout 30")
    assert shown.error is None, shown.text
    yield notebook
    assert notebook.px("works.clear()", "--timeout 30").error is None
    answer = notebook.px(RIGHT, "--timeout 30")
    assert answer.text.endswith(f"   {notebook.size}"), answer.text
    assert notebook.names["world"].pull("kept") == [0, 1, 2]


def test_a_skipped_collective_is_told_in_the_cell_that_made_it(early):
    shown = early.px(f"def step():\n    {EARLY}\n\nif rank != 1:\n    step()\nprint('end')", "--timeout 2")
    lines = shown.text.splitlines()
    assert lines[0] == "After 2 s: ranks 0, 2 wait in all_reduce for rank 1, which finished the cell without it."
    assert lines[1:4] == [
        "ranks 0, 2   line 5:  step()",
        f"             line 2 in step:  {EARLY}",
        "             waits in all_reduce, collective 1, shape (4,) of float32",
    ]
    assert "finished the cell: never called all_reduce" in shown.text
    assert "end" in shown.text and "synchronize" not in shown.text


def test_an_innocent_line_is_told_with_the_one_that_called(early):
    shown = early.px(f"if rank != 1:\n    {EARLY}\nfor work in works:\n    work.wait()", "--timeout 2")
    assert shown.text.startswith("After 2 s: ranks 0, 2 wait in all_reduce for rank 1, which finished the cell")
    assert "line 4:  work.wait()" in shown.text
    assert f"shape (4,) of float32, called in line 2:  {EARLY}" in shown.text


def test_a_rank_that_raised_is_told_first_and_does_not_wait(early):
    shown = early.px(f"if rank != 1:\n    {EARLY}\nelse:\n    raise ValueError('x')")
    assert shown.text.startswith("rank 1 raised ValueError: x")
    assert "waits in all_reduce, collective" in shown.text, shown.text
