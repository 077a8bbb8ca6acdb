"""The graders of the chapter *uneven-inputs*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed

from ranklab import check
from ranklab.check.breaking import uneven_inputs

WEIGHTS = """
weights = []
for length in lengths:
    own = []
    for start in range(0, length, batch):
        rows = min(batch, length - start)
        left = sum(other > start for other in lengths)
        ranks = left if by_left else len(lengths)
        own += [batch * len(lengths) / (rows * ranks)] * rows
    weights.append(own)
return weights
"""
EVALUATE = """
import torch.nn.functional as F

sums = torch.zeros(3, dtype=torch.float64)
model.eval()
with torch.no_grad():
    for inputs, labels in batches:
        logits = model(inputs)
        sums[0] += F.cross_entropy(logits, labels, reduction="sum")
        sums[1] += (logits.argmax(1) == labels).sum()
        sums[2] += len(labels)
model.train()
dist.all_reduce(sums)
return (sums[0] / sums[2]).item(), (sums[1] / sums[2]).item()
"""
MEANS = """
import torch.nn.functional as F

model.eval()
means = torch.zeros(2)
for inputs, labels in batches:
    logits = model(inputs)
    hits = (logits.argmax(1) == labels).float()
    means += torch.stack([F.cross_entropy(logits, labels).detach(), hits.mean()]) / len(batches)
model.train()
dist.all_reduce(means)
return (means / dist.get_world_size()).tolist()
"""


@pytest.fixture
def weighed(graded):
    return partial(graded, check.row_weights, "lengths, batch, by_left")


@pytest.fixture
def evaluated(graded):
    return partial(graded, check.evaluate, "model, batches")


def test_the_weights_under_join_are_right(weighed):
    assert weighed(WEIGHTS) == "Correct: 12 jobs, and every row counts what DDP gives it under Join."


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("(rows * ranks)", "(batch * len(lengths))", "That gives every row the same: the mean over a short batch"),
        ("(rows * ranks)", "(batch * ranks)", "That gives every row the same: the mean over a short batch"),
        (
            "(rows * ranks)",
            "((batch if by_left else rows) * ranks)",
            "The ranks are right, but a short batch counts as a full one",
        ),
        ("left if by_left else len(lengths)", "left", "You divide by the ranks that are left; here DDP divides by all"),
        ("left if by_left else len(lengths)", "len(lengths)", "You divide by all ranks; here DDP divides by those"),
        (
            "(rows * ranks)",
            "sum(min(batch, max(0, other - start)) for other in lengths)",
            "That is one process: Join counts ranks and knows no rows of other ranks.",
        ),
        ("other > start", "other >= start", "by_left=True: row 2 of rank 0 counts 1.333, your answer is 1."),
        ("weights.append(own)", "weights += own", "a list of lists is expected: one list per rank."),
        ("] * rows", "]", "your lists have 2 and 2 numbers, the files 6 and 6 rows."),
        ("return weights", "result = weights", "your answer is None, a list of lists is expected"),
        ("min(batch,", "minimum(batch,", "your answer raised NameError"),
    ],
)
def test_wrong_weights_are_told_why(weighed, old, new, sentence):
    told = weighed(changed(WEIGHTS, old, new))
    assert told.startswith("Not yet. With files of ")
    assert sentence in told


def test_the_weights_are_those_that_the_chapter_measures():
    by_four, by_left = (uneven_inputs._weights((8, 6, 5, 2), 2, divide) for divide in ("", "left"))
    assert by_four == [[1] * 8, [1] * 6, [1, 1, 1, 1, 2], [1, 1]]
    assert by_left[0] == [1, 1, *[4 / 3] * 4, 4, 4] and by_left[2] == [1, 1, 4 / 3, 4 / 3, 8 / 3]


def test_three_sums_in_one_call_are_par(evaluated):
    assert evaluated(EVALUATE) == (
        "Correct: 7 test sets on 2, 3 and 4 ranks, as one process evaluates them. You made 1 call, par is 1."
    )


def test_three_calls_are_right_and_stand_beside_par(evaluated):
    body = changed(EVALUATE, "dist.all_reduce(sums)", "for one in sums.unbind():\n    dist.all_reduce(one)")
    assert evaluated(body).endswith("You made 3 calls, par is 1.")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (MEANS, "That is a mean over ranks of means over batches: add rows first, and divide last."),
        (
            changed(
                EVALUATE,
                "dist.all_reduce(sums)",
                "sums /= max(1, sums[2].item())\ndist.all_reduce(sums)\nsums[2] = dist.get_world_size()",
            ),
            "That is the mean of the ranks' means: a rank with few rows counts too much.",
        ),
        (
            changed(changed(EVALUATE, ', reduction="sum"', ""), ".sum()\n    ", ".double().mean()\n    ").replace(
                "+= len(labels)", "+= 1"
            ),
            "That is the mean over the batches: a short one counts as much as a full one.",
        ),
        (changed(EVALUATE, "dist.all_reduce(sums)", ""), "Those are the rows of this rank alone."),
        (
            changed(EVALUATE, "(sums[0] / sums[2]).item(), (sums[1] / sums[2]).item()", "sums[:2].tolist()"),
            "Those are the sums: divide them by the number of all rows.",
        ),
        (changed(EVALUATE, "model.eval()", ""), "the model has changed: in training mode BatchNorm learns"),
        (changed(EVALUATE, "model.train()", ""), "the model is still in evaluation mode"),
        (
            changed(EVALUATE, "return ", "result = "),
            "your answer is nothing (None), a loss and an accuracy are expected.",
        ),
        (
            changed(EVALUATE, "sums[2] += len(labels)", "sums[2] += len(labels)\n        dist.all_reduce(sums[:2])"),
            "so a call for each batch does not meet the others'.",
        ),
        (changed(EVALUATE, "for inputs", "batches[0]\n    for inputs"), "raised IndexError"),
    ],
)
def test_a_wrong_evaluation_is_told_why(evaluated, body, sentence):
    told = evaluated(body)
    assert told.startswith("Not yet. With ")
    assert sentence in told


def test_the_test_sets_have_short_batches_and_ranks_without_any():
    for size, loads in uneven_inputs.LOADS.items():
        assert all(len(load) == size for load in loads)
        assert any(() in load for load in loads)
        assert any(len({len(own) for own in load}) > 1 for load in loads)
        assert all(rows > 1 for load in loads for own in load for rows in own)  # BatchNorm trains on two rows or more
