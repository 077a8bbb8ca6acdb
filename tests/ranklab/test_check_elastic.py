"""Graders of the chapter *elastic*: the right answer passes, each classic mistake gets its own sentence."""

from itertools import pairwise

import pytest

from ranklab import check


def verdict(capsys, grader, answer):
    grader(answer)
    return capsys.readouterr().out.strip()


def followed(lines, extra=1):
    steps = [line["step"] for line in lines]
    return [one - two + extra for one, two in pairwise(steps) if two <= one]


def by_restarts(log):
    pairs = pairwise(log)
    return [one["step"] - two["step"] for one, two in pairs if two["restarts"] > one["restarts"]]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda log: followed(line for line in log if line["rank"] == 0), "Correct: 6 jobs"),
        (lambda log: tuple(followed(line for line in log if line["rank"] == 0)), "Correct: 6 jobs"),
        (lambda log: followed([line for line in log if line["rank"] == 0], extra=0), "repeats 5 steps: 9 to 13."),
        (followed, "Several ranks log the same step; that is no repetition."),
        (lambda log: followed(line for line in log if line["host"] == "computer1"), "in the log of computer1"),
        (lambda log: followed(line for line in log if line["host"] == "computer2"), "in the log of computer2"),
        (by_restarts, "restarts counts for one torchrun only, and a change of members does not raise it."),
        (lambda log: [], "At any time exactly one line per step comes from rank 0."),
        (lambda log: sum(followed(line for line in log if line["rank"] == 0)), "a list of numbers is expected."),
        (lambda log: log[-1]["steps"], "your answer raised KeyError"),
    ],
)
def test_lost_steps(capsys, answer, sentence):
    assert sentence in verdict(capsys, check.lost_steps, answer)


def choose(cluster, nnodes=None, restarts=None, timeout=None):
    both = f"{cluster['least']}:{cluster['hosts']}"
    need = cluster["killed"] + cluster["lost"]
    middle = (cluster["wait"] + cluster["stall"]) / 2
    return nnodes or both, need if restarts is None else restarts, timeout or middle


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (choose, "Correct: 5 clusters"),
        (lambda c: choose(c, timeout=c["stall"]), "Correct: 5 clusters"),
        (lambda c: choose(c, nnodes=str(c["hosts"])), "nnodes is '2', so the job waits for all 2 hosts"),
        (lambda c: choose(c, nnodes=f"{c['hosts']}:{c['least']}"), "the smaller number stands first."),
        (lambda c: choose(c, nnodes=f"1:{c['hosts']}"), "between 6 and 8 hosts are worth running."),
        (lambda c: choose(c, restarts=c["killed"]), "A lost host counts, too"),
        (lambda c: choose(c, restarts=c["killed"] + c["lost"] + c["added"] if c["added"] > 3 else None), "not count"),
        (lambda c: choose(c, restarts=100), "a bug would run 100 times, where 4 are enough."),
        (lambda c: choose(c, restarts=0), "4 faults can count on one torchrun."),
        (lambda c: choose(c, restarts="3"), "max_restarts is '3', it should be a whole number."),
        (lambda c: choose(c, timeout=c["wait"]), "the timeout of 20 s ends healthy ranks, which wait 20 s."),
        (lambda c: choose(c, timeout=1800), "you hear of a silent host later than after 60 s."),
        (lambda c: choose(c, timeout=float("nan")), "later than after 60 s."),
        (lambda c: choose(c)[0], "it should be (nnodes, max_restarts, timeout)."),
        (lambda c: c["most"], "your answer raised KeyError"),
    ],
)
def test_elastic_settings(capsys, answer, sentence):
    assert sentence in verdict(capsys, check.elastic_settings, answer)
