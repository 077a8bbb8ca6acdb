"""The grader of *pipeline-schedules*: the right answer, and wrong ones that somebody would give."""

import pytest

from ranklab import check
from ranklab.check.model_parallel.pipeline_schedules import CASES, NAMES, held, times


def said(capsys, answer):
    check.schedule_that_fits(answer)
    told = capsys.readouterr().out
    assert told.count("\n") == 1, "one sentence"
    return told


def right(stages, micro, room, kept):
    if min(2 * micro, 3 * stages - 1) / 2 <= room:
        return "interleaved"
    if min(stages, micro) <= room:
        return "1F1B"
    return "recomputed" if min(stages, micro) * kept + 1 <= room else "none"


def with_gpipe(stages, micro, room, kept):
    chosen = right(stages, micro, room, kept)
    return "GPipe" if chosen == "1F1B" and micro <= room else chosen


def never_none(stages, micro, room, kept):
    chosen = right(stages, micro, room, kept)
    return "recomputed" if chosen == "none" else chosen


def forgets_the_one_at_work(stages, micro, room, kept):
    chosen = right(stages, micro, room, kept)
    return "recomputed" if chosen == "none" and stages * kept <= room else chosen


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (right, "Correct: 20 of 20 pipelines run the fastest schedule that fits."),
        (with_gpipe, "Correct: 20 of 20 pipelines"),
        (lambda p, m, room, kept: "1F1B", "1F1B takes 33, interleaved fits too and takes 28.5."),
        (lambda p, m, room, kept: "GPipe", "GPipe takes 33, interleaved fits too and takes 28.5."),
        (lambda p, m, room, kept: "interleaved", "room for 5, kept 0.1: interleaved does not fit, rank 0 holds 5.5."),
        (
            lambda p, m, room, kept: "interleaved" if room > p else "1F1B",
            "room for 5, kept 0.1: interleaved does not fit",
        ),
        (lambda p, m, room, kept: "recomputed", "recomputed takes 44, interleaved fits too and takes 28.5."),
        (
            lambda p, m, room, kept: right(p, m, room, kept).replace("recomputed", "none"),
            "recomputed fits, it holds 1.4.",
        ),
        (never_none, "room for 1.3, kept 0.1: recomputed does not fit, rank 0 holds 1.4."),
        (forgets_the_one_at_work, "recomputed does not fit, rank 0 holds 1.4."),
        (lambda p, m, room, kept: "none", "recomputed fits, it holds 1.4."),
        (lambda p, m, room, kept: "ZeroBubble", "your answer is 'ZeroBubble'; it is one of GPipe, 1F1B, interleaved"),
        (lambda p, m, room, kept: None, "your answer is None; it is one of"),
        (lambda p, m, room, kept: p / 0, "your answer raised ZeroDivisionError"),
    ],
)
def test_schedule_that_fits(capsys, answer, sentence):
    assert sentence in said(capsys, answer)


def test_every_name_is_the_right_answer_somewhere():
    assert {right(*case) for case in CASES} == {"interleaved", "1F1B", "recomputed", "none"}
    assert all(set(table) == set(NAMES) for table in (times(4, 8), held(4, 8, 0.1)))


def test_the_formulas_are_those_of_the_page():
    assert [times(4, 8)[name] for name in NAMES] == [33, 33, 28.5, 44]
    assert [held(4, 8, 0.25)[name] for name in NAMES] == [8, 4, 5.5, 2]
