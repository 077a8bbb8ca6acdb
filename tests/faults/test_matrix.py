"""Every fault on three ranks, on two and four where its words depend on it: what is told, how fast, what is left."""

import re
import time

import pytest
from faults_catalogue import ANY, CPUS, FAULTS, GPUS, WAYS
from support import steady

from ranklab.layout import name_ranks
from ranklab.rank.errands import read_variable, unpack
from ranklab.system.gpus import visible_gpu_names
from ranklab.system.load import now, taken_by_others

FIRST = {}  # what a fault's first run told, by the number of ranks and its name
# Every test of this file runs on both backends; without a GPU one half is skipped, and starts nothing.
NO_GPU = "this half of the matrix needs an NVIDIA GPU, which all ranks share, and nvidia-smi shows none here"
needs_gpu = pytest.mark.skipif(not visible_gpu_names(), reason=NO_GPU)
pytestmark = pytest.mark.parametrize("backend", [CPUS, pytest.param(GPUS, marks=needs_gpu)], indirect=True)
LEAVE = "if dist.is_initialized():\n    dist.destroy_process_group()"
# A quiet machine reports within the deadline and three seconds (the table at the end tells) and is usable in one; a
# machine that is half as fast for a while has not broken anything. Where other programs take a share of the processors
# the limits are those of what is left: a rank is ended only when it has had one.
REPORT_LIMIT = 8.0
USABLE_LIMIT = 6.0


def prepare(notebook, fault):
    """Bring all ranks to the same state: a new group, or none, and a variable to keep."""
    way = WAYS[notebook.backend]
    # Two cells, and not one for each line: this is done three hundred times.
    for cell in (f"{way.setup}\n{LEAVE}", f"{way.start if fault.group else ''}\nkept = 10 + rank"):
        shown = notebook.px(cell, "--timeout 30")
        assert shown.error is None, f"before {fault.name}, {cell!r}:\n{shown.text}"


def options(fault):
    """Return the options of a fault's cell: a long deadline where the report comes before it, for a busy machine."""
    early = not fault.headline.startswith(("After", ".*"))
    return f"{fault.options} --timeout 30" if early else fault.options


def commit(notebook, fault, figures=None):
    """Run a faulty cell and a right one after it; return the report."""
    size = notebook.size
    prepare(notebook, fault)
    before, began = now(), time.monotonic()
    shown = notebook.px(fault.cell, options(fault))
    reported = time.monotonic()
    answer = notebook.px(WAYS[notebook.backend].right, "--timeout 30")
    usable = time.monotonic()
    label = name_ranks(range(size))
    assert answer.text == f"{label}   {size}", answer.text
    have = [unpack(value) for _, value in notebook.names["world"].view(range(size)).apply_sync(read_variable, "kept")]
    expected = [None if fault.dies and rank == 1 else 10 + rank for rank in range(size)]
    assert have == expected or "SIGABRT" in shown.text
    if figures is not None:
        told = "all" if None not in have else f"all but {name_ranks([r for r in range(size) if have[r] is None])}"
        figures(fault.name, size, reported - began, usable - reported, told)
    ours = max(0.02, 1 - taken_by_others(before, now()))
    assert reported - began < REPORT_LIMIT / ours
    assert usable - reported < USABLE_LIMIT / ours
    return shown


def expected(fault, size):
    """Return the headline of a fault on so many ranks."""
    ranks = list(range(size))
    others = [rank for rank in ranks if rank != 1]
    names = {"all": name_ranks(ranks), "others": name_ranks(others), "but_0": name_ranks(ranks[1:])}
    return fault.headline.format(**names, wait="waits" if len(others) == 1 else "wait")


# conftest.py leaves those together that a fault names in its sizes.
@pytest.mark.parametrize("notebook", ANY, indirect=True, ids=lambda size: f"{size} ranks")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_told_and_freed(notebook, fault, figures):
    fault = fault.on(notebook.backend)
    shown = commit(notebook, fault, figures)
    FIRST[notebook.backend, notebook.size, fault.name] = shown.text
    assert re.match(expected(fault, notebook.size), steady(shown.text)), shown.text
    assert fault.says in shown.text
    assert shown.error is not None
    assert not re.search(r"frame #\d|NCCL (WARN|INFO)|^\S*\[[EWIF]\d{4} ", shown.text, re.MULTILINE), shown.text


def test_two_and_four_ranks_are_tried_where_the_words_depend_on_it(backend):
    for fault in (fault.on(backend) for fault in FAULTS):
        depends = "{" in fault.headline
        assert fault.sizes == (ANY if depends else (3,)), fault.name


# A test each, so that the time that a test may take is that of one fault.
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_with_no_right_cell_before_it_a_fault_is_told_as_the_first_time(notebook, fault):
    fault = fault.on(notebook.backend)
    first = FIRST.get((notebook.backend, notebook.size, fault.name)) or told(notebook, fault)
    again = told(notebook, fault)
    assert fault.moves or again == first


def test_after_all_these_faults_every_rank_answers(notebook):
    answer = notebook.px(WAYS[notebook.backend].right, "--timeout 30")
    assert answer.error is None
    assert answer.text.endswith(f"   {notebook.size}")


def told(notebook, fault):
    """Return what a fault's cell tells, with no other cell after it."""
    prepare(notebook, fault)
    shown = notebook.px(fault.cell, options(fault))
    assert shown.error is not None, fault.name
    assert re.match(expected(fault, notebook.size), steady(shown.text)), f"{fault.name}:\n{shown.text}\n{shown.error!r}"
    return shown.text
