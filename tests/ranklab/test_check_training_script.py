"""The graders of the chapter *training-script*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed

from ranklab import check
from ranklab.check.data_parallel import training_script

LEAVE = """
leave = torch.tensor(int(asked or seconds_left < 60))
dist.all_reduce(leave)
return leave.item() > 0
"""
LOSS = """
total = sum(loss * count for loss, count in zip(losses, rows))
both = torch.tensor([total, sum(rows)], dtype=torch.float64)
dist.all_reduce(both)
return (both[0] / both[1]).item()
"""
MEANS = """
mean = torch.tensor(sum(losses) / max(1, len(losses)))
dist.all_reduce(mean)
return mean / dist.get_world_size()
"""


@pytest.fixture
def decided(graded):
    return partial(graded, check.leave_together, "asked, seconds_left")


@pytest.fixture
def averaged(graded):
    return partial(graded, check.epoch_loss, "losses, rows")


def test_a_sum_of_wishes_is_par(decided):
    assert decided(LEAVE) == (
        "Correct: 18 decisions on 2, 3 and 4 ranks, each taken by all. You made 1 call, par is 1."
    )


def test_a_maximum_is_right_and_two_calls_stand_beside_par(decided):
    body = """
wish, left = torch.tensor(int(asked)), torch.tensor(seconds_left)
dist.all_reduce(wish, dist.ReduceOp.MAX)
dist.all_reduce(left, dist.ReduceOp.MIN)
return bool(wish) or left < 60
"""
    assert "You made 2 calls, par is 1." in decided(body)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "return asked or seconds_left < 60",
            "SIGTERM on rank 0: rank 1: it stays, and should leave. It looked at itself",
        ),
        (
            changed(LEAVE, "dist.all_reduce(leave)", "dist.broadcast(leave, src=0)"),
            "SIGTERM on rank 1: rank 0: it stays",
        ),
        (
            changed(LEAVE, "all_reduce(leave)", "all_reduce(leave, dist.ReduceOp.MIN)"),
            "SIGTERM on rank 0: rank 0: it stays",
        ),
        (changed(LEAVE, " or seconds_left < 60", ""), "Another rank's clock has less than 60 seconds."),
        (changed(LEAVE, "asked or ", ""), "SIGTERM on rank 0: rank 0: it stays, and should leave. It was asked itself"),
        (changed(LEAVE, "< 60", "<= 60"), "60 seconds left on rank 0: rank 0: it leaves, and should stay."),
        (changed(LEAVE, "> 0", "== 1"), "All ranks have a reason: a sum of ones is the number of ranks, not 1."),
        (changed(LEAVE, "return ", "result = "), "rank 0: it returned nothing (None); True or False is expected."),
        ("if asked:\n    return True\n" + LEAVE.strip(), "waits in all_reduce for rank 0"),
    ],
)
def test_a_wrong_decision_is_told_why(decided, body, sentence):
    told = decided(body)
    assert told.startswith("Not yet. With 2 ranks")
    assert sentence in told


def test_sums_and_counts_are_par(averaged):
    assert averaged(LOSS) == (
        "Correct: 9 epochs on 2, 3 and 4 ranks, every row counted once. You made 1 call, par is 1."
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (MEANS, "With 2 ranks and shorter last batches: rank 0: the answer is 1.417, over all rows it is 1.826."),
        (MEANS, "That is the mean of the ranks' means"),
        ("return sum(losses) / max(1, len(losses))", "That is the mean of its own batches"),
        (
            changed(
                MEANS,
                "sum(losses) / max(1, len(losses))",
                "sum(a * b for a, b in zip(losses, rows)) / max(1, sum(rows))",
            ),
            "That is the mean of the ranks' losses",
        ),
        (changed(LOSS, "[total, sum(rows)]", "[sum(losses), len(losses)]"), "That is the mean of all batches"),
        (changed(LOSS, " / both[1]", ""), "That is the sum over all rows: divide it by their number."),
        (changed(LOSS, "both[1]", "sum(rows)"), "The sum is over all ranks, and you divide by this rank's rows."),
        (changed(LOSS, "return ", "result = "), "the answer is nothing (None), a number is expected."),
    ],
)
def test_a_wrong_loss_is_told_why(averaged, body, sentence):
    told = averaged(body)
    assert told.startswith("Not yet. With 2 ranks")
    assert sentence in told


def test_a_rank_without_batches_divides_by_zero_in_its_own_words():
    case = training_script.Case(2, tuple(training_script.EPOCHS[2][:2]), "no batch on rank 1")
    assert "add up first, and divide last" in training_script._wrong_loss(float("nan"), case, 1)


def test_the_slips_of_an_epoch_are_told_apart():
    for epoch in training_script.EPOCHS[1:]:
        given = epoch[:2]
        means = [training_script._mean(losses) for losses, _ in given]
        truth = sum(training_script._total(*each) for each in given) / sum(sum(rows) for _, rows in given)
        assert abs(training_script._mean(means) - truth) > 0.01
