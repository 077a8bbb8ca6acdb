"""The figure of one backward: lanes, slices, sums, waits."""

import pytest

from ranklab.errors import WorldError
from ranklab.figures import backward
from ranklab.figures.backward import _levels

RANK = {"began": 1.0, "ended": 1.5, "ready": [1.1, 1.2, 1.3], "sums": [("4 MB", 1.1, 1.4), ("8 MB", 1.3, 1.5)]}


def bars(axes):
    return [(bar.get_x(), bar.get_width(), bar.get_hatch()) for bar in axes.patches]


def test_a_rank_has_slices_a_wait_and_sums():
    axes = backward({"first": [RANK]}, "title").axes[0]
    drawn = [(round(left), round(width), hatch) for left, width, hatch in bars(axes)]
    assert drawn[:3] == [(0, 100, None), (100, 100, None), (200, 100, None)]
    assert drawn[3] == (300, 200, "////")
    assert drawn[4:] == [(100, 300, None), (300, 200, None)]
    assert axes.get_title(loc="left") == "title"
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["rank 0"]


def test_runs_begin_at_zero_each_and_ranks_share_a_clock():
    late = RANK | {"began": 1.05}
    later = {key: value + 9 for key, value in RANK.items() if key in ("began", "ended")}
    later |= {"ready": [10.5], "sums": []}
    axes = backward({"a": [RANK, late], "b": [later]}).axes[0]
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    assert labels == ["rank 0", "rank 1", "rank 0"]
    starts = [round(left) for left, _, _ in bars(axes)]
    assert starts[0] == 0 and 50 in starts and starts[-1] == 0


def test_a_backward_without_a_wait_has_no_hatching():
    axes = backward({"": [RANK | {"ended": 1.3, "sums": []}]}).axes[0]
    assert not any(hatch for _, _, hatch in bars(axes))


def test_sums_under_way_together_lie_below_each_other():
    assert _levels([("", 0, 2), ("", 1, 3), ("", 2, 4), ("", 3, 5)]) == [0, 1, 0, 1]
    assert _levels([]) == []


@pytest.mark.parametrize("runs", [{}, {"a": []}, {"a": [RANK | {"ready": []}]}])
def test_nothing_to_draw_is_refused(runs):
    with pytest.raises(WorldError, match="at least one"):
        backward(runs)


@pytest.mark.parametrize("wrong", [{"sums": [("x", 2.0, 1.0)]}, {"ended": 1.25}])
def test_an_end_before_its_beginning_is_refused(wrong):
    with pytest.raises(WorldError, match="On rank 0 something ends before it begins"):
        backward({"a": [RANK | wrong]})


def test_a_sum_that_arrives_after_backward_is_drawn_to_its_end():
    axes = backward({"a": [RANK | {"sums": [("x", 1.1, 1.9)]}]}).axes[0]
    assert max(left + width for left, width, _ in bars(axes)) == pytest.approx(900)
    assert axes.get_xlim()[1] > 900
