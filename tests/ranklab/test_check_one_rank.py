"""Graders whose answers talk to other ranks, in a notebook with one rank: they say what to do, and raise nothing."""

import pytest
from support import started

from ranklab import check

TOGETHER = (
    check.accuracy,
    check.average_gradients,
    check.batch_statistics,
    check.chain,
    check.few_messages,
    check.gather_uneven,
    check.hand_over,
    check.launched_at,
    check.mean_gradient,
    check.ring_sum,
    check.shift,
    check.sum_on_rank_zero,
    check.training_calls,
    check.transpose,
    check.weighted_loss,
)


@pytest.fixture(scope="module")
def one_rank(bare_notebook):
    with started(bare_notebook, "ranklab.start(1)") as ready:
        yield ready


@pytest.mark.parametrize("grader", TOGETHER, ids=lambda grader: grader.__name__)
def test_one_rank_is_told_to_start_more(one_rank, capsys, grader):
    grader(lambda *_: None)
    assert capsys.readouterr().out == (
        "Not yet. This exercise needs at least two ranks: world.stop(), then world = ranklab.start(4).\n"
    )
