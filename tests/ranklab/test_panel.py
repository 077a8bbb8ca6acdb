"""The panel: rank order, joined outputs, the cause first, the same bytes every time."""

from html.parser import HTMLParser

from ranklab.cells.panel import Panel
from ranklab.outcome import LIMIT, CellOutcome, RankOutcome, clean
from ranklab.palette import rank_color


def panel(*entries, **how):
    return Panel(CellOutcome([RankOutcome(**entry) for entry in entries], **how))


def test_equal_outputs_share_a_row_and_others_stand_in_rank_order():
    shown = panel({"rank": 0, "stdout": "same\n"}, {"rank": 1, "stdout": "other\n"}, {"rank": 2, "stdout": "same\n"})
    assert shown.text() == "ranks 0, 2   same\nrank 1       other"


def test_lines_of_one_rank_stay_together():
    shown = panel({"rank": 0, "stdout": "a\nb\n"}, {"rank": 1, "stdout": "c\n"})
    assert shown.text() == "rank 0   a\n         b\nrank 1   c"


def test_a_value_follows_what_was_printed_and_has_no_counter():
    assert panel({"rank": 0, "stdout": "printed\n", "value": "5"}).text() == "rank 0   printed\n         5"


def test_silence_shows_nothing():
    assert not panel({"rank": 0}, {"rank": 1})


def test_the_failing_rank_comes_first_and_those_that_waited_after_it():
    shown = panel(
        {"rank": 0, "state": "freed", "traceback": ["line 2:  wait()"], "note": "still here when it was freed"},
        {"rank": 1, "stdout": "fine\n"},
        {"rank": 2, "state": "raised", "error": "ValueError: no", "traceback": ["line 1:  x", "ValueError: no"]},
        headline="rank 2 raised ValueError: no",
    )
    lines = shown.text().splitlines()
    assert lines[0] == "rank 2 raised ValueError: no"
    assert lines[1].startswith("rank 2   line 1")
    assert lines[3].startswith("rank 0   line 2")
    assert lines[-1] == "rank 1   fine"


def test_an_error_that_only_names_another_rank_is_told_once():
    entries = [
        {
            "rank": rank,
            "state": "raised",
            "traceback": ["line 1:  step()", f"ValueError: rank {rank} of 12 has no rows"],
        }
        for rank in (1, 2, 3)
    ]
    other = {"rank": 4, "state": "raised", "traceback": ["line 1:  step()", "ValueError: rank 1 of 12 has no rows"]}
    lines = panel(*entries, other).text().splitlines()
    assert lines == [
        "ranks 1, 4   line 1:  step()",
        "             ValueError: rank 1 of 12 has no rows",
        "ranks 2, 3   the same, with its own rank in it",
    ]


def test_stderr_is_marked_in_text_html_and_metadata():
    shown = panel({"rank": 0, "stdout": "out\n", "stderr": "beware\n"})
    assert shown.text() == "rank 0   out\nrank 0 ! beware"
    assert 'class="rl-row rl-stderr"' in shown.html()
    assert shown.metadata() == {"ranklab": {"stderr": True}}
    assert panel({"rank": 0, "stdout": "out\n"}).metadata() == {}


def test_html_escapes_what_ranks_print_and_balances_its_tags():
    shown = panel({"rank": 3, "stdout": "<script>alert(1)</script> & <b>\n"}, headline="<h>", advice="<i>")
    html = shown.html()
    assert "<script>" not in html and "<b>" not in html and "<i>" not in html

    class Balance(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open_tags = []

        def handle_starttag(self, tag, attrs):
            self.open_tags.append(tag)

        def handle_endtag(self, tag):
            assert self.open_tags.pop() == tag

    parser = Balance()
    parser.feed(html)
    assert parser.open_tags == []
    assert rank_color(3) in html


def test_many_ranks_share_one_chip():
    shown = panel(*[{"rank": rank, "stdout": "x\n"} for rank in range(16)])
    assert shown.html().count('class="rl-rank"') == 1
    assert "ranks 0–15" in shown.text()


def test_text_is_cleaned_of_colours_and_carriage_returns():
    assert clean("\x1b[31mred\x1b[0m") == "red"
    assert clean("10%\r50%\r100%\ndone\n") == "100%\ndone\n"
    assert clean("windows\r\nline") == "windows\nline"


def test_endless_text_keeps_its_beginning_and_its_end():
    text = clean("a" * LIMIT + "b" * LIMIT)
    assert text.startswith("aaa") and text.endswith("bbb")
    assert f"{LIMIT} characters left out" in text
    assert len(text) < LIMIT + 100
