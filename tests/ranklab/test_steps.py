"""An exchange step by step: a page that can be stepped through, and a picture."""

import pytest

from ranklab.errors import WorldError
from ranklab.figures import steps

CONTENTS = [[[[0], [0]], [[1], [1]]], [[[0], [0, 1]], [[0, 1], [1]]], [[[0, 1], [0, 1]], [[0, 1], [0, 1]]]]
MESSAGES = [[(0, 1, 0), (1, 0, 1)], [(1, 0, 0), (0, 1, 1)]]


def test_steps_show_each_state_as_a_table_and_mark_what_came_from_whom():
    page = steps(CONTENTS, MESSAGES, "two <ranks>")._repr_html_()
    assert page.count("<table>") == 3 and page.count("<li>") == 3
    assert page.count('data-from="0"') == page.count('data-from="1"') == 2
    assert "two &lt;ranks&gt;" in page and "two <ranks>" not in page
    first = page.split("<li>")[2]
    assert "After step 1 of 2" in first and first.count("<i class=rl-in") == 2
    assert len(page) < 40_000 and "http" not in page and " id=" not in page


def test_steps_tell_what_was_added_from_what_was_copied():
    page = steps(CONTENTS, MESSAGES)._repr_html_()
    _, first, second = page.split("<li>")[1:]
    assert "+ from 0" in first and "copy of" not in first
    assert "copy of 0" in second and "+ from" not in second


def test_a_button_at_its_end_keeps_the_focus_that_the_arrow_keys_need():
    page = steps(CONTENTS, MESSAGES)._repr_html_()
    assert "aria-disabled" in page and ".disabled=" not in page


def test_steps_are_the_same_bytes_each_time_as_page_and_picture():
    one, two = (steps(CONTENTS, MESSAGES, "title") for _ in range(2))
    assert one._repr_html_() == two._repr_html_() and one._repr_png_() == two._repr_png_()
    assert repr(one) == "title\nstep 1   0 → 1: chunk 0, 1 → 0: chunk 1\nstep 2   1 → 0: chunk 0, 0 → 1: chunk 1"


@pytest.mark.parametrize(
    ("contents", "messages", "said"),
    [
        (CONTENTS, MESSAGES[:1], "3 states and 1 steps"),
        ([], [], "0 states"),
        ([[]], [], "the same ranks"),
        ([CONTENTS[0], [[[0], [0]]]], MESSAGES[:1], "the same ranks"),
        (CONTENTS[:2], [[(0, 2, 0)]], "no message (0, 2, 0) among 2 ranks, 2 chunks"),
    ],
)
def test_steps_of_nonsense_are_refused(contents, messages, said):
    with pytest.raises(WorldError) as refused:
        steps(contents, messages)
    assert said in str(refused.value)
