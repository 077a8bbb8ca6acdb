"""Graders of the chapter on DDP: the right answer passes, each classic mistake gets its own sentence."""

import inspect

import pytest
import torch
import torch.distributed as dist

from ranklab import check


def statistics(rows):
    wide = rows.double()
    count = torch.full((1, rows.shape[1]), float(len(rows)), dtype=torch.double)
    sums = torch.cat([count, wide.sum(0, True), (wide * wide).sum(0, True)])
    dist.all_reduce(sums)
    mean, square = sums[1] / sums[0], sums[2] / sums[0]
    return mean.float(), (square - mean * mean).float()


def in_64_bits(rows):
    return tuple(each.double() for each in statistics(rows))


def mean_of_means(rows):
    sums = torch.stack([torch.full((3,), float(len(rows))), rows.sum(0), rows.square().sum(0), rows.mean(0)])
    dist.all_reduce(sums.nan_to_num_())
    mean = sums[1] / sums[0]
    return sums[3] / dist.get_world_size(), sums[2] / sums[0] - mean * mean


def both_averaged(rows):
    both = torch.stack([rows.mean(0), rows.var(0, correction=0)])
    dist.all_reduce(both)
    return both / dist.get_world_size()


def mean_of_variances(rows):
    count = torch.tensor(float(len(rows)))
    total, within = rows.sum(0), rows.var(0, correction=0) if len(rows) else rows.sum(0)
    for tensor in (count, total, within):
        dist.all_reduce(tensor)
    return total / count, within / dist.get_world_size()


def weighted_by_nothing(rows):
    mean = rows.sum(0) / max(len(rows), 1)
    dist.all_reduce(mean)
    return mean / dist.get_world_size(), mean


def not_a_number(rows):
    sums = torch.stack([rows.mean(0) * len(rows), rows.square().mean(0) * len(rows), torch.full((3,), len(rows))])
    dist.all_reduce(sums)
    mean, square = sums[0] / sums[2], sums[1] / sums[2]
    return mean, square - mean * mean


def minus_one(rows):
    mean, variance = statistics(rows)
    count = torch.tensor(float(len(rows)))
    dist.all_reduce(count)
    return mean, variance * count / (count - 1)


def in_32_bits(rows):
    sums = torch.stack([rows.sum(0), rows.square().sum(0), torch.full((3,), float(len(rows)))])
    dist.all_reduce(sums)
    mean, square = sums[0] / sums[2], sums[1] / sums[2]
    return mean, square - mean * mean


def two_calls(rows):
    dist.barrier()
    return statistics(rows)


def nothing(rows):
    statistics(rows)


def own_rows(rows):
    return rows.mean(0), rows.var(0, correction=0)


for function in list(globals().values()):
    if callable(function) and getattr(function, "__module__", "") == __name__:
        function.__module__ = "__main__"  # travels by value: a rank cannot import this file


@pytest.fixture(autouse=True)
def imports(notebook):
    """What an answer uses is looked up on the rank, where a chapter's first cells have defined it."""
    used = ["import torch\nimport torch.distributed as dist\n", inspect.getsource(statistics)]
    assert notebook.px("\n".join(used)).error is None


def verdict(capsys, grader, answer):
    grader(answer)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (statistics, "Correct: 12 batches have the statistics of one process. You made 1 call, par 1."),
        (own_rows, "With 2 ranks and equally many rows on each rank: rank 0: the mean: element 0"),
        (in_64_bits, "rank 0: the mean: the dtype is float64, expected float32.\n"),
        (mean_of_means, "That is the mean of the ranks' means: a rank with few rows counts too much."),
        (both_averaged, "rank 0: the variance: element 0 is"),
        (mean_of_variances, "That is the mean of the ranks' variances: the ranks' means differ from one another too."),
        (weighted_by_nothing, "With 2 ranks and equally many rows on each rank: rank 0: the variance: element 0 is"),
        (not_a_number, "A mean of no rows is not a number: send sums and counts."),
        (minus_one, "That divides by the number of rows minus one."),
        (in_32_bits, "The digits are lost in the difference of two large numbers: add up in 64 bits."),
        (two_calls, "the statistics are right, but rank 0 made 2 calls, par is 1."),
        (nothing, "rank 0 should return two tensors, the mean and the variance."),
    ],
)
def test_batch_statistics(notebook, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.batch_statistics, answer)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda steps, micro, buffers: (steps, steps * buffers + 2 * (steps > 1)), "Correct: in 6 loops DDP called"),
        (
            lambda steps, micro, buffers: (steps * micro, 0),
            "With steps=3, micro=1, buffers=False: you say 0 calls of broadcast, DDP made 2.",
        ),
        (
            lambda steps, micro, buffers: (steps * micro, steps * buffers + 2 * (steps > 1)),
            "With steps=1, micro=4, buffers=True: you say 4 calls of all_reduce, DDP made 1.",
        ),
        (
            lambda steps, micro, buffers: (steps, steps * micro * buffers + 2 * (steps > 1)),
            "With steps=1, micro=4, buffers=True: you say 4 calls of broadcast, DDP made 1.",
        ),
        (
            lambda steps, micro, buffers: (steps, steps * buffers + 2 * (steps * micro > 1)),
            "With steps=1, micro=4, buffers=True: you say 3 calls of broadcast, DDP made 1.",
        ),
        (
            lambda steps, micro, buffers: (steps,),
            "With steps=1, micro=1, buffers=False: your answer is (1,), two numbers are expected: calls of all_reduce",
        ),
        (lambda steps, micro, buffers: None, "your answer is None, two numbers are expected"),
        (lambda steps, micro, buffers: (torch.ones(2), 0), "you say tensor([1., 1.]) calls of all_reduce, DDP made 1."),
        (lambda steps, micro: (steps, 0), "your answer raised TypeError"),
    ],
)
def test_training_calls(notebook, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.training_calls, answer)
