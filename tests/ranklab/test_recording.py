"""What figures keep beside their picture: the values that the site lets a reader move."""

import json

import pytest
from IPython.core.formatters import DisplayFormatter

from ranklab.errors import WorldError
from ranklab.figures import backward, chart, exchange, schedules, sums, waiting

RANK = {"began": 1.0, "ended": 1.5, "ready": [1.1, 1.2, 1.3], "sums": [("4 MB", 1.1, 1.4)]}
STEPS = [[("F", 0, 5.0, 5.1), ("B", 0, 5.4, 5.6004)]]
LEFT_OUT = [("all_reduce", 2.0, 2.5), ("all_reduce", 3.0, None)]
WAITS = [{"began": 1.0, "calls": LEFT_OUT, "error": 7.0}, {"began": 1.5, "calls": LEFT_OUT[:1], "error": None}]


def kept(figure):
    """What a notebook stores beside the picture."""
    data, metadata = DisplayFormatter().format(figure)
    assert set(data) == {"text/plain", "image/png"} and data["image/png"].startswith(b"\x89PNG")
    return json.loads(metadata["ranklab"]["recording"])


def test_a_backward_keeps_all_runs_and_draws_those_that_are_chosen():
    figure = backward({"one": [RANK], "two": [RANK]}, "title", drawn=["two"])
    assert next(text.get_text().strip() for text in figure.axes[0].texts) == "two"
    values = kept(figure)
    assert (values["kind"], values["title"]) == ("backward", "title")
    assert [name for name, _ in values["runs"]] == ["one", "two"]
    assert values["runs"][0][1] == [
        {"began": 0.0, "ready": [100.0, 200.0, 300.0], "sums": [["4 MB", 100.0, 400.0]], "ended": 500.0}
    ]


def test_schedules_keep_whole_milliseconds_of_what_takes_long():
    values = kept(schedules({"1F1B": (STEPS, STEPS)}))
    assert values["runs"] == [["1F1B", [[[0, 0, 0, 100], [1, 0, 400, 600]]], [[[0, 0, 0, 100], [1, 0, 400, 600]]]]]


def test_an_exchange_keeps_every_operation():
    figure = exchange([[1, 2], [3]], {"gather": [[1, 3], None], "reduce": [[4], [3]]}, drawn=["gather"])
    assert "reduce" not in [text.get_text() for text in figure.axes[0].texts]
    assert kept(figure)["grids"] == [["before", [[1, 2], [3]]], ["gather", [[1, 3], []]], ["reduce", [[4], [3]]]]


def test_one_name_to_draw_is_not_read_as_its_letters():
    figure = exchange([1, 2], {"gather": [[1, 2], None], "sum": [3, 3]}, drawn="sum")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "sum" in texts and "gather" not in texts
    with pytest.raises(WorldError, match="no run 'mean' to draw"):
        exchange([1, 2], {"sum": [3, 3]}, drawn="mean")


@pytest.mark.parametrize(("left", "end"), [(None, 1.4), (1.0, 1.0)])
def test_without_an_error_a_call_that_never_came_back_has_some_width(left, end):
    ranks = [{"began": 0.0, "calls": [("all_reduce", 1.0, left)], "error": None}, {**WAITS[0], "began": 0.0}]
    ranks[1] |= {"calls": [], "error": None}
    figure = waiting(ranks)
    assert figure.axes[0].get_xlim() == (0, pytest.approx(end))
    hatched = [patch.get_width() for patch in figure.axes[0].patches if patch.get_hatch()]
    assert hatched == ([pytest.approx(end - 1)] if left is None else hatched)
    assert kept(figure)["end"] == 1000 * end


def test_after_a_long_wait_a_call_that_never_came_back_is_seen_too():
    ranks = [{"began": 0.0, "calls": [("barrier", 0.0, 60.0), ("barrier", 100.0, None)], "error": None}]
    assert waiting(ranks).axes[0].get_xlim() == (0, pytest.approx(110))


def test_waiting_ends_after_the_first_error_and_keeps_calls_that_never_came_back():
    figure = waiting(WAITS, "title")
    assert figure.axes[0].get_xlim() == (0, pytest.approx(6.4))
    values = kept(figure)
    assert values["ranks"][0] == {"calls": [["all_reduce", 1000, 1500], ["all_reduce", 2000, None]], "error": 6000}


@pytest.mark.parametrize(
    ("ranks", "sentence"),
    [
        ([{"began": 0, "calls": [], "error": None}], "at least one rank with a call"),
        ([{"began": 0, "calls": [("barrier", 2, 1), ("barrier", 3, 4)], "error": None}], "ends before it begins"),
    ],
)
def test_waiting_for_nonsense_is_refused(ranks, sentence):
    with pytest.raises(WorldError, match=sentence):
        waiting(ranks)


def test_a_run_that_is_not_there_cannot_be_drawn():
    with pytest.raises(WorldError, match="no run 'three' to draw; it got 'one'"):
        backward({"one": [RANK]}, drawn=["three"])


def test_a_figure_that_a_chapter_draws_itself_keeps_nothing():
    figure, _ = chart("title", "x", "y")
    assert DisplayFormatter().format(figure)[1] == {}


def test_a_message_that_waited_for_an_earlier_one_begins_a_new_step():
    own, whole = [[1], [10], [100]], [111]
    zero = [
        ("recv", 1, 0, [0], own[0]),
        ("recv", 2, 0, [0], [11]),
        ("send", 1, 0, whole, whole),
        ("send", 2, 0, whole, whole),
    ]
    others = [[("send", 0, 0, own[rank], own[rank]), ("recv", 0, 0, own[rank], own[rank])] for rank in (1, 2)]
    values = kept(sums({"a_server": [(calls, whole) for calls in (zero, *others)]}, "title"))
    ((name, states, messages),) = values["ways"]
    assert (values["kind"], name) == ("sums", "a_server")
    assert states == [own, [whole, own[1], own[2]], [whole] * 3]
    assert messages == [[[1, 0, 0, 1], [2, 0, 0, 1]], [[0, 1, 0, 1], [0, 2, 0, 1]]]


def test_a_sum_whose_messages_nobody_sent_is_refused():
    with pytest.raises(WorldError, match="received what nobody sent, in 'a ring'"):
        sums({"a ring": [([("recv", 1, 0, [0], [1])], [1]), ([], [10])]})
    with pytest.raises(WorldError, match="got no way"):
        sums({})
