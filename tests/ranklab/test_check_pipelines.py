"""The graders of *pipelines*: the right answer, and the classic mistakes, each with a sentence of its own."""

from math import ceil

import pytest

from ranklab import check
from ranklab.check import grading
from ranklab.check.model_parallel.pipelines import SIZES, simulate


def said(capsys, grader, answer):
    grader(answer)
    told = capsys.readouterr().out
    assert told.count("\n") == 1, "one sentence"
    return told


def turns(ahead, micro):
    order = [("F", k) for k in range(ahead)]
    for k in range(micro):
        order += [("B", k)] + [("F", k + ahead)] * (k + ahead < micro)
    return order


def right(stage, stages, micro, room):
    return turns(min(room, stages - stage, micro), micro)


def gpipe(stage, stages, micro, room):
    return [(what, k) for what in "FB" for k in range(micro)]


def naive(stage, stages, micro, room):
    return [(what, k) for k in range(micro) for what in "FB"]


def crossed(stage, stages, micro, room):  # the first stage goes through the micro-batches from the last one on
    order = right(stage, stages, micro, 1)
    return [(what, micro - 1 - k) for what, k in order] if stage == 0 else order


def in_twos(stage, stages, micro, room):  # faster than par with room for two: no stage waits for what cannot come
    order = right(stage, stages, micro, room)
    if room != 2 or stages < 3 or stage == 0 or stage == stages - 1:
        return order
    return [(what, k) for at in range(0, micro, 2) for what in "FB" for k in range(at, min(at + 2, micro))]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (right, "Correct: 27 pipelines in par time"),
        (lambda *given: iter(right(*given)), "Correct: 27 pipelines in par time"),
        (in_twos, "Correct: 27 pipelines, 5 of them faster than par, and none held more"),
        (lambda *given: [("F", [0])], 'stage 0 does (\'F\', [0]); a step is ("F", k) or ("B", k).'),
        (lambda *given: ["F0", "B0"], "stage 0 does 'F0'; a step is"),
        (gpipe, "stage 0 holds 2 micro-batches at F1."),
        (lambda s, p, m, room: right(s, p, m, p), "room 1: stage 0 holds 2 micro-batches"),
        (naive, "room 2: your schedule takes 96, par is 69. One micro-batch after the other leaves room unused."),
        (lambda s, p, m, room: right(s, p, m, max(1, room - 1)), "your schedule takes"),
        (lambda s, p, m, room: right(s, p, m, room)[:-1], "stage 0 never does ('B', 7)."),
        (lambda s, p, m, room: right(s, p, m, room)[::-1], "backward through micro-batch 7 before it went forward."),
        (lambda s, p, m, room: [*right(s, p, m, room), ("F", 0)], "stage 0 does ('F', 0), which is no step, or does"),
        (lambda s, p, m, room: [("W", 0)], "stage 0 does ('W', 0), which is no step"),
        (crossed, "stage 0 waits for B7 of stage 1, and nobody can go on."),
        (lambda *given: None, "your answer is None, a list of steps is expected."),
        (lambda *given: [1], "stage 0 does 1; a step is"),
        (lambda *given: [][9], "your answer raised IndexError"),
        (lambda *given: (step / 0 for step in [1]), "your answer raised ZeroDivisionError"),
    ],
)
def test_within(capsys, answer, sentence):
    assert sentence in said(capsys, check.within, answer)


@pytest.mark.parametrize(("stages", "micro"), SIZES)
def test_the_simulation_knows_the_formula(stages, micro):
    for order in (gpipe, right):
        took, stuck = simulate([order(stage, stages, micro, stages) for stage in range(stages)])
        assert (took, stuck) == (3 * (micro + stages - 1), "")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda p, share: max(1, ceil((p - 1) * (1 - share) / share - 1e-9)), "Correct: 30 pipelines"),
        (lambda p, share: max(1, ceil((p - 1) / share)), "That is the bubble as a part of the ideal time"),
        (lambda p, share: max(1, int((p - 1) * (1 - share) / share)), "round up."),
        (lambda p, share: max(1, round((p - 1) * (1 - share) / share) + 1), "One fewer would do."),
        (lambda p, share: 4 * p, "Four times the stages is a rule of thumb"),
        (lambda p, share: ceil(p * (1 - share) / share), "There are p − 1 slots of bubble, not p."),
        (lambda p, share: 0, "There is at least one micro-batch."),
        (lambda p, share: 1, "That is too few."),
        (lambda p, share: 10**6, "That is too many."),
        (lambda p, share: 10**400, "That is too many."),
        (lambda p, share: share, "it should be a whole number."),
        (lambda p, share: float("inf"), "your answer is inf, it should be a whole number."),
        (lambda p, share: float("nan"), "your answer is nan, it should be a whole number."),
        (lambda p, share: [][p], "your answer raised IndexError"),
    ],
)
def test_fewest(capsys, answer, sentence):
    assert sentence in said(capsys, check.fewest, answer)


def best(stages, rows, per_row, overhead):
    divisors = [m for m in range(1, rows + 1) if rows % m == 0]
    return min(divisors, key=lambda m: (m + stages - 1) * (overhead + rows / m * per_row))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (best, "Correct: 30 of 30 pipelines are as fast as they can be."),
        (lambda p, rows, c, a: rows, "many of them cost more than they save."),
        (lambda p, rows, c, a: 1, "Fewer micro-batches mean a larger bubble."),
        (lambda p, rows, c, a: 4 * p if rows % (4 * p) == 0 else 16, "The best number depends on all four."),
        (
            lambda p, rows, c, a: best(p, rows, 1e-4, a),
            "30 of 30 are right with per_row=0.0001. stages=2, rows=96, per_r",
        ),
        (lambda p, rows, c, a: 7, "7 is no divisor of 48."),
        (lambda p, rows, c, a: 0, "0 is no divisor of 48."),
        (lambda p, rows, c, a: ((p - 1) * rows * c / (a + 1e-9)) ** 0.5, "it should be a whole number."),
        (lambda p, rows, c, a: rows / 0, "your answer raised ZeroDivisionError"),
    ],
)
def test_best_micro(capsys, answer, sentence):
    assert sentence in said(capsys, check.best_micro, answer)


def test_a_loop_that_never_ends_is_stopped(capsys, monkeypatch):
    monkeypatch.setattr(grading, "DEADLINE", 0.1)

    def forgets_to_count(stages, share):
        micro = 1
        while (stages - 1) / (micro + stages - 1) > share:
            pass
        return micro

    told = said(capsys, check.fewest, forgets_to_count)
    assert told == "Not yet. 4 stages, at most 7%: your answer did not come back within 0.1 s. Does a loop never end?\n"
