"""Fitted costs of messages, as a figure."""

import pytest

from ranklab.figures import cost_fit


def test_a_cost_line_has_its_points_and_their_residuals():
    figure = cost_fit({"a": [(1e3, 1e-3), (1e6, 3e-3)]}, {"a": (1e-3, 1e-9)}, {"a": [(4e6, 10e-3)]}, "title")
    above, below = figure.axes
    assert [text.get_text() for text in above.get_legend().get_texts()] == ["a", "a, not fitted"]
    residuals = [float(value) for line in below.lines[:2] for value in line.get_ydata()]
    assert residuals == pytest.approx([0, 50, 100], abs=0.2)
    assert below.xaxis.get_major_formatter()(4e6, 0) == "4 MB"
