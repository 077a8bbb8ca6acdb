"""Graders of the chapter on buckets: the right answer passes, each classic mistake gets its own sentence."""

from itertools import accumulate

import pytest
import torch

from ranklab import check
from ranklab.check.data_parallel.buckets import simulated


def verdict(capsys, grader, answer):
    grader(answer)
    return capsys.readouterr().out.strip()


def full(ready, buckets):
    return [max(ready.index(p) for p in bucket) + 1 for bucket in buckets]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda ready, buckets: list(accumulate(full(ready, buckets), max)), "Correct: DDP launched all"),
        (lambda ready, buckets: tuple(accumulate(full(ready, buckets), max)), "Correct: DDP launched all"),
        (full, "A full bucket also waits for the buckets before it."),
        (lambda ready, buckets: sorted(full(ready, buckets)), "Buckets go in the order of the list"),
        (lambda ready, buckets: [len(ready)] * len(buckets), "That is a backward without overlap."),
        (
            lambda ready, buckets: [n - 1 for n in accumulate(full(ready, buckets), max)],
            "The gradient that fills the bucket counts too.",
        ),
        (lambda ready, buckets: list(accumulate(map(len, buckets))), "do not get ready in the order of the buckets."),
        (
            lambda ready, buckets: [min(ready.index(p) for p in b) + 1 for b in buckets],
            "A bucket waits for its last gradient, not for its first.",
        ),
        (lambda ready, buckets: None, "your answer is None, a list with a count for each bucket is expected."),
        (lambda ready, buckets: 3, "your answer is 3, a list with a count"),
        (lambda ready, buckets: torch.tensor(list(accumulate(full(ready, buckets), max))), "Correct: DDP launched all"),
        (lambda ready, buckets: [torch.ones(2)] * len(buckets), "a list of whole numbers is expected."),
        (lambda ready, buckets: ready[9], "your answer raised IndexError"),
    ],
)
def test_launched_at(notebook, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.launched_at, answer)


def talk(sizes, alpha, beta):
    return [alpha + size * beta for size in sizes]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (simulated, "Correct: 40 backwards waited as long as you said."),
        (lambda full, sizes, a, b: sum(talk(sizes, a, b)), "That hides nothing: sums begin while backward computes."),
        (
            lambda full, sizes, a, b: max(0, sum(talk(sizes, a, b)) - max(full)),
            "No sum can begin before the first bucket is full.",
        ),
        (lambda full, sizes, a, b: talk(sizes, a, b)[-1], "The last sum may still have to wait for the link."),
        (lambda full, sizes, a, b: a + sum(sizes) * b, "That is one bucket."),
        (
            lambda full, sizes, a, b: max(map(sum, zip(full, talk(sizes, a, b), strict=True))) - max(full),
            "The link carries one at a time.",
        ),
        (lambda full, sizes, a, b: simulated(full, sizes, 0, b), "Each sum pays α."),
        (
            lambda full, sizes, a, b: simulated(sorted(full), sizes, a, b),
            "A bucket that is full too early waits for those before it.",
        ),
        (lambda full, sizes, a, b: simulated(full, sizes, a, b) + max(full), "what is asked is the wait."),
        (lambda full, sizes, a, b: None, "your answer is None, it should be a number."),
        (lambda full, sizes: 0, "your answer raised TypeError"),
    ],
)
def test_exposed(capsys, answer, sentence):
    assert sentence in verdict(capsys, check.exposed, answer)


def best(layers, caps, alpha, beta):
    def took(cap):
        now, cut = 0, [[0, 0]]
        for seconds, size in layers:
            cut += [[0, 0]] if cut[-1][1] >= cap else []
            now += seconds
            cut[-1] = [now, cut[-1][1] + size]
        return simulated(*zip(*cut, strict=True), alpha, beta)

    return min(caps, key=took)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (best, "Correct: 30 of 30 links have a cap that is among the best."),
        (lambda layers, caps, a, b: min(caps), "Where α is large, many sums cost more than they hide."),
        (lambda layers, caps, a, b: max(caps), "A large bucket begins late"),
        (lambda layers, caps, a, b: 4e6, "Neither the smallest nor the largest cap is right everywhere"),
        (lambda layers, caps, a, b: 25e6, "your answer is 25000000.0, it should be one of"),
        (lambda layers, caps, a, b: caps[:1], "your answer is [1000000.0], it should be one of [1000000, 4000000"),
        (lambda layers, caps, a, b: best(layers, caps, a * 100, b), "of 30 are right. The first that is not:"),
        (lambda layers, caps, a, b: caps[7], "your answer raised IndexError"),
    ],
)
def test_best_cap(capsys, answer, sentence):
    assert sentence in verdict(capsys, check.best_cap, answer)
