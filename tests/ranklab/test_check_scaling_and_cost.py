"""The graders of *scaling-and-cost*: the right answer, and the classic mistakes, each with a sentence of its own."""

import pytest

from ranklab import check


def said(capsys, grader, answer):
    grader(answer)
    told = capsys.readouterr().out
    assert told.count("\n") == 1, "one sentence"
    return told


def ring(ranks, size, alpha, beta):
    return 2 * (ranks - 1) * (alpha + size / ranks * beta)


def efficiency(kind, ranks, seconds, talk):
    own = seconds / ranks if kind == "strong" else seconds
    return own / (own + talk)


def right(kind, ranks, seconds, size, alpha, beta):
    return efficiency(kind, ranks, seconds, ring(ranks, size, alpha, beta))


def test_right_efficiencies_are_told_so(capsys):
    assert said(capsys, check.scaling_efficiency, right).startswith("Correct: 24 jobs")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda k, n, t, s, a, b: efficiency("weak", n, t, ring(n, s, a, b)), "That is weak scaling"),
        (lambda k, n, t, s, a, b: efficiency("strong", n, t, ring(n, s, a, b)), "That is strong scaling"),
        (lambda k, n, t, s, a, b: n * right(k, n, t, s, a, b), "That is the speed-up"),
        (lambda k, n, t, s, a, b: 100 * right(k, n, t, s, a, b), "return a fraction"),
        (lambda k, n, t, s, a, b: efficiency(k, n, t, ring(n, s, a, b) / 2), "2 (N − 1) steps"),
        (lambda k, n, t, s, a, b: efficiency(k, n, t, ring(n, s * n, a, b)), "an N-th of the bytes"),
        (lambda k, n, t, s, a, b: efficiency(k, n, t, ring(n, s, 0, b)), "Where is α?"),
        (lambda k, n, t, s, a, b: efficiency(k, n, t, ring(n, s, 0, b) + a * (n > 1)), "an α of its own"),
        (lambda k, n, t, s, a, b: 0.5, "expected 1."),
        (lambda k, n, t, s, a, b: "most", "it should be a number"),
        (lambda k, n, t, s, a, b: 1 / (n - 1), "your answer raised ZeroDivisionError"),
    ],
)
def test_a_wrong_efficiency_is_told_why(capsys, wrong, sentence):
    told = said(capsys, check.scaling_efficiency, wrong)
    assert told.startswith("Not yet. ")
    assert sentence in told


def bill(run, operations=6, mfu=None, efficiency=None, lost=None):
    useful = run["peak"] * (run["mfu"] if mfu is None else mfu)
    useful *= run["efficiency"] if efficiency is None else efficiency
    useful *= 1 - (run["lost"] if lost is None else lost)
    hours = operations * run["parameters"] * run["tokens"] / useful / 3600
    return hours / run["gpus"] / 24, hours * run["price"], hours * run["watts"] * run["overhead"] / 1000


def changed(days=1.0, money=1.0, kwh=1.0):
    def answer(run):
        factors = [factor(run) if callable(factor) else factor for factor in (days, money, kwh)]
        return [part * factor for part, factor in zip(bill(run), factors, strict=True)]

    return answer


def test_right_bills_are_told_so(capsys):
    assert said(capsys, check.run_bill, bill).startswith("Correct: days, money and energy of 6 runs")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda run: bill(run, operations=2), "six operations per parameter and token"),
        (lambda run: bill(run, efficiency=1), "512 GPUs with an efficiency of 75 %: days is"),
        (lambda run: bill(run, efficiency=1), "What does the efficiency do to it?"),
        (lambda run: bill(run, efficiency=1 / run["efficiency"]), "A lower efficiency makes a run longer"),
        (lambda run: bill(run, lost=0), "The lost part of the days is paid, too."),
        (lambda run: [part * (1 + run["lost"]) for part in bill(run, lost=0)], "fit into 1 − lost of the days"),
        (lambda run: bill(run, mfu=1), "Only the MFU's part of the peak computes"),
        (lambda run: bill(run, mfu=1 / run["mfu"]), "A lower MFU makes a run longer"),
        (changed(days=24), "That is in hours."),
        (changed(days=lambda run: run["gpus"]), "All GPUs compute at the same time."),
        (changed(money=lambda run: 1 / run["gpus"]), "Each of the GPUs is paid and takes power."),
        (changed(money=1 / 24), "The price is for an hour"),
        (changed(kwh=1000), "That is in Wh."),
        (changed(kwh=lambda run: 1 / run["overhead"]), "Cooling takes energy"),
        (changed(kwh=1.7), "expected "),
        (lambda run: bill(run)[:2], "your answer has 2 entries"),
        (lambda run: ["soon", 1, 2], "days is 'soon', a number is expected"),
        (lambda run: None, "three numbers: days, money and kWh is expected"),
        (lambda run: run["cost"], "your answer raised KeyError"),
    ],
)
def test_a_wrong_bill_is_told_why(capsys, wrong, sentence):
    told = said(capsys, check.run_bill, wrong)
    assert told.startswith("Not yet. ")
    assert sentence in told
