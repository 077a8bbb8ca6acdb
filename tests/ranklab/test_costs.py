"""Fitted costs of messages, as a figure."""

import pytest

from ranklab.errors import WorldError
from ranklab.figures import cost_fit

LINE = {"a": (1e-3, 1e-9)}


def test_an_unseen_point_where_the_line_is_below_zero_is_refused():
    with pytest.raises(WorldError, match="says -1 ms for 2000 bytes: fit relative errors"):
        cost_fit({"a": [(4e3, 1e-3)]}, {"a": (-3e-3, 1e-6)}, {"a": [(2e3, 1e-3)]})


def test_a_cost_line_has_its_points_and_their_residuals():
    figure = cost_fit({"a": [(1e3, 1e-3), (1e6, 3e-3)]}, {"a": (1e-3, 1e-9)}, {"a": [(4e6, 10e-3)]}, "title")
    above, below = figure.axes
    assert [text.get_text() for text in above.get_legend().get_texts()] == ["a", "a, not fitted"]
    residuals = [float(value) for line in below.lines[:2] for value in line.get_ydata()]
    assert residuals == pytest.approx([0, 50, 100], abs=0.2)
    assert below.xaxis.get_major_formatter()(4e6, 0) == "4 MB"


@pytest.mark.parametrize(
    ("fitted", "lines", "sentence"),
    [
        ({}, {}, "at least one series"),
        ({"a": []}, LINE, "no point for 'a'"),
        ({"a": [(1e3, 1e-3)]}, {}, "points for 'a' and no line"),
        ({"a": [(0, 1e-3), (1e3, 1e-3)]}, LINE, "above zero, but 'a' has 0.001 s for 0 bytes"),
        ({"a": [(1e3, 0)]}, LINE, "'a' has 0 s for 1000 bytes"),
        ({"a": [(1e3, 1e-3)]}, {"a": (0, 0)}, "the line of 'a' says 0 ms for 1000 bytes"),
        (
            {"a": [(4e3, 1e-4), (1e6, 1e-3)]},
            {"a": (-1.24e-4, 1e-9)},
            "the line of 'a' says -0.12 ms for 4000 bytes: fit relative errors, or leave small sizes out.",
        ),
    ],
)
def test_a_cost_that_cannot_be_drawn_is_refused(fitted, lines, sentence):
    with pytest.raises(WorldError, match=sentence):
        cost_fit(fitted, lines)
