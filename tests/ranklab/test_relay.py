"""A number that is handed on from rank to rank, drawn with an arrow for every step."""

import pytest

from ranklab.errors import WorldError
from ranklab.figures import relay


def test_a_relay_has_an_arrow_for_every_step_that_a_left_neighbour_knew():
    from matplotlib.text import Annotation

    figure = relay({"chain": [[1], [None, 21]], "ring": [[1, 21], [20, 21]]}, "title")
    arrows = [sum(isinstance(text, Annotation) for text in axes.texts) for axes in figure.axes]
    assert arrows == [1, 2]
    assert [text.get_text() for text in figure.axes[0].texts if text.get_text()] == ["1", "21"]
    assert [axes.get_title() for axes in figure.axes] == ["chain", "ring"]
    for nothing in {}, {"chain": []}, {"chain": [[]]}:
        with pytest.raises(WorldError, match="no pattern"):
            relay(nothing)
