"""The graders of *cost-of-talking*: the right answer, and the classic mistakes, each with a sentence of its own."""

import pytest

from ranklab import check


def said(capsys, grader, answer):
    grader(answer)
    told = capsys.readouterr().out
    assert told.count("\n") == 1, "one sentence"
    return told


def ring(ranks, size, alpha, beta):
    return 2 * (ranks - 1) * (alpha + size / ranks * beta)


def tree(ranks, size, alpha, beta):
    return 2 * (ranks - 1).bit_length() * (alpha + size * beta)


def bus(operation, ranks, size, seconds):
    factor = (ranks - 1) / ranks
    factor = {"all_reduce": 2 * factor, "broadcast": 1, "reduce": 1}.get(operation, factor)
    return factor * size / seconds


def test_right_bus_bandwidths_are_told_so(capsys):
    assert said(capsys, check.bus_bandwidth, bus).startswith("Correct: in 24 measurements")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda o, n, s, t: s / t, "that is the algorithm bandwidth"),
        (lambda o, n, s, t: 8 * bus(o, n, s, t), "not in bits"),
        (lambda o, n, s, t: (s / t) ** 2 / bus(o, n, s, t), "multiply by it"),
        (lambda o, n, s, t: 2 * (n - 1) / n * s / t, "only all_reduce moves the data twice"),
        (lambda o, n, s, t: (n - 1) / n * s / t, "an all_reduce moves the data twice"),
        (lambda o, n, s, t: (n - 1) / n * s / t * (1 + (o == "all_reduce")), "the root sends or receives the whole"),
        (lambda o, n, s, t: 2 * s / t, "a rank does not send its own part"),
        (lambda o, n, s, t: 2 * (n - 1) * s / t, "divide by n"),
        (lambda o, n, s, t: 0.7 * bus(o, n, s, t), "0.7 times the rate of the link."),
        (lambda o, n, s, t: "fast", "it should be a number"),
        (lambda o, n, s, t: {}[o], "your answer raised KeyError"),
    ],
)
def test_a_wrong_bus_bandwidth_is_told_why(capsys, wrong, sentence):
    told = said(capsys, check.bus_bandwidth, wrong)
    assert told.startswith("Not yet. ")
    assert sentence in told


def choose(ranks, size, alpha, beta):
    return "ring" if ring(ranks, size, alpha, beta) < tree(ranks, size, alpha, beta) else "tree"


def test_right_choices_are_told_so(capsys):
    assert said(capsys, check.choose, choose) == "Correct: 48 of 48, on both sides of every crossing.\n"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda n, s, a, b: "ring", "does not pay for 2 (N − 1) steps"),
        (lambda n, s, a, b: "tree", "a ring an N-th per step"),
        (lambda n, s, a, b: "ring" if s > 0.8 * a / b else "tree", "depends on the number of ranks"),
        (lambda n, s, a, b: {"ring": "tree", "tree": "ring"}[choose(n, s, a, b)], "0 of 48 are right"),
        (lambda n, s, a, b: choose(n, s / 10, a, b), "of 48 are right"),
        (lambda n, s, a, b: choose(n, s, 1e-4, 1e-9), "48 of 48 are right with α = 0.0001 and β = 1e-09. 4 ranks, "),
        (lambda n, s, a, b: n > 2, "it should be 'ring' or 'tree'"),
        (lambda n, s, a, b: [][n], "your answer raised IndexError"),
    ],
)
def test_a_wrong_choice_is_told_why(capsys, wrong, sentence):
    told = said(capsys, check.choose, wrong)
    assert told.startswith("Not yet. ")
    assert sentence in told
