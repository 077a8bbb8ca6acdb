"""The graders of the chapter *feeding-ranks*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed
from torch.utils.data import DistributedSampler

from ranklab import check
from ranklab.check.data_parallel import feeding_ranks

ROWS = """
draw = torch.Generator().manual_seed(seed + epoch)
order = torch.randperm(length, generator=draw).tolist()
total = -(-length // ranks) * ranks
return (order * ranks)[rank:total:ranks]
"""
ACCURACY = """
votes = torch.bincount(rows[right], minlength=length)
dist.all_reduce(votes, dist.ReduceOp.MAX)
return votes.sum() / length
"""


@pytest.fixture
def sampled(graded):
    return partial(graded, check.rows_of, "length, rank, ranks, seed, epoch")


@pytest.fixture
def counted(graded):
    return partial(graded, check.accuracy, "rows, right, length")


def test_the_rows_of_the_sampler_are_right(sampled):
    assert sampled(ROWS) == "Correct: 15 orders, and every rank reads the rows that torch's sampler gives it."


def test_the_sampler_itself_is_right(sampled):
    body = """
from torch.utils.data import DistributedSampler
sampler = DistributedSampler(range(length), ranks, rank, seed=seed)
sampler.set_epoch(epoch)
return list(sampler)
"""
    assert sampled(body).startswith("Correct")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "order = torch.randperm(length, generator=draw).tolist()",
            "order = list(range(length))",
            "They are not shuffled.",
        ),
        ("seed + epoch", "seed", "seed 0, epoch 1: rank 0: your rows"),
        ("seed + epoch", "seed", "epoch has no part in the order."),
        ("seed + epoch", "epoch", "seed has no part in the order."),
        ("seed + epoch", "seed + epoch + rank", "All ranks have to draw one order: leave rank out of it."),
        (
            "[rank:total:ranks]",
            "[rank * total // ranks : (rank + 1) * total // ranks]",
            "That is a block; the sampler deals rows in turn.",
        ),
        ("(order * ranks)[rank:total:ranks]", "order[rank::ranks]", "Pad: every rank reads 3 rows."),
        (
            "(order * ranks)[",
            "(order + order[: total - length])[",
            "With 1 row on 3 ranks, seed 0, epoch 0: rank 2: your rows are [], the sampler's [0]. Repeat the order",
        ),
        (
            "(order * ranks)[",
            "(order + [0] * (total - length))[",
            "You pad with row 0; the sampler starts again at the head of the shuffled order.",
        ),
        (
            "(order * ranks)[",
            "(order + order[-1:] * (total - length))[",
            "You pad with the last row; the sampler starts again at the head of the order.",
        ),
        ("-(-length // ranks)", "length // ranks", "The tail is dropped: pad instead."),
        (
            "torch.Generator().manual_seed(seed + epoch)",
            "torch.manual_seed(seed + epoch)",
            "the rows are right, but torch's own generator moved",
        ),
        ("return (", "return tuple(", "your function returned tuple, not a list."),
        ("order * ranks", "order * worlds", "your function raised NameError"),
    ],
)
def test_wrong_rows_are_told_why(sampled, old, new, sentence):
    told = sampled(changed(ROWS, old, new))
    assert told.startswith("Not yet. With ")
    assert sentence in told


def test_a_vote_for_each_row_is_par(counted):
    assert counted(ACCURACY) == (
        "Correct: 9 test sets on 2, 3 and 4 ranks, every row counted once. You made 1 call, par is 1."
    )


def test_votes_divided_by_reads_are_right_and_stand_beside_par(counted):
    body = """
hits, reads = torch.zeros(length), torch.zeros(length)
hits[rows], reads[rows] = right.float(), 1.0
dist.all_reduce(hits)
dist.all_reduce(reads)
return (hits / reads).mean().item()
"""
    assert "You made 2 calls, par is 1" in counted(body)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "counts = torch.tensor([right.sum(), len(rows)])\ndist.all_reduce(counts)\nreturn counts[0] / counts[1]",
            "With 2 ranks and 7 rows: rank 0: the answer is 0.625, one process gets 4 of 7. "
            "The sampler repeated row 4, and you count it each time.",
        ),
        (
            "share = right.float().mean()\ndist.all_reduce(share)\nreturn share / dist.get_world_size()",
            "The sampler repeated row 4",
        ),
        ("hits = right.sum()\ndist.all_reduce(hits)\nreturn hits / length", "The right ones still hold row 4"),
        (changed(ACCURACY, ", dist.ReduceOp.MAX", ""), "The right ones still hold row 4"),
        (
            changed(ACCURACY, "votes.sum() / length", "votes.sum() / (len(rows) * dist.get_world_size())"),
            "You divide by 8 reads, of 7 rows.",
        ),
        (changed(ACCURACY, " / length", ""), "That is the count of right rows"),
        ("return right.float().mean().item()", "That is the accuracy of its own rows."),
        (changed(ACCURACY, "dist.all_reduce(votes, dist.ReduceOp.MAX)", ""), "Only the rows of this rank are in it"),
        (changed(ACCURACY, "return ", "result = "), "the answer is nothing (None), a number is expected."),
        ("if dist.get_rank():\n    return 0.0\n" + ACCURACY.strip(), "rank 0 waits in all_reduce for rank 1"),
    ],
)
def test_a_wrong_accuracy_is_told_why(counted, body, sentence):
    told = counted(body)
    assert told.startswith("Not yet. With 2 ranks")
    assert sentence in told


def test_the_expected_rows_are_those_of_torch():
    sampler = DistributedSampler(range(10), 4, 1, seed=2)
    sampler.set_epoch(3)
    assert feeding_ranks._torchs((10, 2, 3), 1, 4) == list(sampler)


def test_the_cases_have_padding_and_fewer_rows_than_ranks():
    assert all(any(length % size for length in lengths) for size, lengths in feeding_ranks.PADDED.items())
    assert all(min(lengths) == 1 for lengths in feeding_ranks.PADDED.values())
    assert min(length for length, _, _ in feeding_ranks.SAMPLED) == 1
