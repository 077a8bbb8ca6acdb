"""The figure of pipeline schedules: lanes, forward and backward, numbers, the prediction below."""

import pytest

from ranklab.errors import WorldError
from ranklab.figures import schedules
from ranklab.palette import PAPER, rank_color

MEASURED = [[("F", 0, 5.0, 5.1), ("B", 0, 5.4, 5.6)], [("F", 0, 5.1, 5.2), ("B", 0, 5.2, 5.4)]]
PREDICTED = [[("F", 0, 0.0, 0.1), ("B", 0, 0.4, 0.6)], [("F", 0, 0.1, 0.2), ("B", 0, 0.2, 0.4)]]


def bars(axes):
    return [(round(bar.get_x()), round(bar.get_width()), round(bar.get_height(), 1)) for bar in axes.patches]


def test_each_rank_has_what_was_measured_and_the_prediction_below_it():
    axes = schedules({"one": (MEASURED, PREDICTED)}, "title").axes[0]
    drawn = bars(axes)
    assert drawn[:4] == [(0, 100, 0.5), (400, 200, 0.5), (100, 100, 0.5), (200, 200, 0.5)]
    assert [bar[:2] for bar in drawn[4:]] == [bar[:2] for bar in drawn[:4]]
    assert all(bar[2] < 0.5 for bar in drawn[4:])
    assert axes.get_title(loc="left") == "title"
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["rank 0", "rank 1"]


def test_forward_and_backward_can_be_told_apart_without_colour():
    from matplotlib.colors import to_hex

    axes = schedules({"one": (MEASURED, PREDICTED)}).axes[0]
    faces = [to_hex(bar.get_facecolor()) for bar in axes.patches]
    assert faces[:4] == [rank_color(0), PAPER, rank_color(1), PAPER]
    filled, opened = axes.patches[:2]
    assert opened.get_zorder() > filled.get_zorder()  # a light edge would hide the edge of the open bar


def test_numbers_stand_where_there_is_room():
    crowded = [[("F", k, k / 1000, (k + 1) / 1000) for k in range(100)] + [("B", 7, 0.1, 0.2)]]
    axes = schedules({"one": (crowded, crowded)}).axes[0]
    assert [text.get_text().strip() for text in axes.texts] == ["one"]
    axes = schedules({"one": (crowded, PREDICTED[:1])}).axes[0]  # measured bars may be narrower than predicted
    assert len(axes.texts) == 102
    axes = schedules({"one": (MEASURED, PREDICTED)}).axes[0]
    assert [text.get_text().strip() for text in axes.texts] == ["one", "0", "0", "0", "0"]


def test_schedules_stand_below_each_other_and_each_begins_at_zero():
    late = [[(what, k, start + 9, end + 9) for what, k, start, end in rank] for rank in MEASURED]
    axes = schedules({"a": (MEASURED, PREDICTED), "b": (late, PREDICTED)}).axes[0]
    assert len(axes.get_yticklabels()) == 4
    assert bars(axes)[8:12] == bars(axes)[:4]


@pytest.mark.parametrize("runs", [{}, {"a": ([], [])}, {"a": (MEASURED, [])}, {"a": ([[], MEASURED[1]], PREDICTED)}])
def test_nothing_to_draw_is_refused(runs):
    with pytest.raises(WorldError, match="at least one step"):
        schedules(runs)


@pytest.mark.parametrize(("step", "words"), [(("B", 3, 2.0, 1.0), "B3 ends before"), (("W", 0, 1.0, 2.0), "not 'W'")])
def test_a_step_that_makes_no_sense_is_refused(step, words):
    with pytest.raises(WorldError, match=words):
        schedules({"a": ([[step]], PREDICTED[:1])})


def test_a_prediction_for_other_ranks_is_refused():
    with pytest.raises(WorldError, match="2 ranks measured and 1 predicted for 'a'"):
        schedules({"a": (MEASURED, PREDICTED[:1]), "b": (MEASURED, PREDICTED)})
