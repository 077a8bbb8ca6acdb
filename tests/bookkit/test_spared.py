"""What ``make mutate`` leaves as it is: nobody could notice the change."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookkit import needs
from bookkit.mutations import changes, mutations


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("torch.set_num_threads(1)", set()),
        ("torch.manual_seed(0)", {"torch.manual_seed(0) left out"}),
        ("x = abs(a - b)", set()),
        ("x = (a - b).abs().max()", set()),
        ("x = zip(a, b, strict=True)", set()),
        ("x = wait(timeout=30)", set()),
        ("x = wait(timeout=timedelta(seconds=30))", set()),
        ("def fastest(ways, rounds=3, *, timeout=9): ...", set()),
        ("x = subprocess.run(program, check=True)", set()),
        ("x = world.pull(name)[0]", set()),
        ("x = off < 1e-5", {"off < 1e-5 reversed"}),
        ('sys.path.insert(0, "scripts")', {'sys.path.insert(0, "scripts") left out'}),
    ],
)
def test_what_no_page_could_notice_is_not_changed(source, left):
    assert {what for what, _ in changes(source)} == left


def test_its_neighbours_are_changed_all_the_same():
    assert {what for what, _ in changes("x = abs(a - 2)")} == {"2 became 3"}
    assert {what for what, _ in changes("def f(x=1, rounds=3): ...")} == {"1 became 2"}
    assert {what for what, _ in changes("meet()\ntorch.set_num_threads(1)")} == {"meet() left out"}


def test_a_large_float_is_doubled_for_one_more_would_be_within_what_is_measured():
    assert {what for what, _ in changes("x = 1e3 * t")} == {"1000.0 became 2000.0"}


def test_the_cell_for_who_came_late_is_left_alone():
    notebook = new_notebook(
        cells=[
            new_code_cell("x = 1"),
            new_markdown_cell(":::{admonition} Start here if you came late\nRun it.\n:::"),
            new_code_cell("x = 1"),
            new_markdown_cell("More"),
            new_code_cell("x = 1"),
        ]
    )
    assert [mutation.index for mutation in mutations(notebook)] == [0, 4]


def test_what_only_a_gpu_runs_is_changed_where_there_is_one(monkeypatch):
    source = 'if device.type == "cuda":\n    wait()\nget(cpu_offload=True)'
    for lacking, expected in ("shows no NVIDIA GPU", ()), ("", ("wait() left out", "True turned")):
        monkeypatch.setitem(needs.NEEDS, needs.NEEDS_GPU, needs.Need(lambda lacking=lacking: lacking, kept=True))
        assert {"wait() left out", "True turned"} & {what for what, _ in changes(source)} == set(expected)
