"""The graders of the chapter *frameworks*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial
from types import SimpleNamespace

import pytest
from support import changed

from ranklab import check
from ranklab.check.capstone import frameworks

STEPS = """
steps = calls // passes
return steps if split_batches else steps * ranks
"""
ORDER = """
parts = [torch.empty_like(values) for _ in range(dist.get_world_size())]
dist.all_gather(parts, values)
batches = [part.view(-1, batch) for part in parts]
return torch.stack(batches, dim=1).flatten()[:length]
"""


@pytest.fixture
def stepped(graded):
    return partial(graded, check.schedule_steps, "calls, ranks, passes, split_batches")


@pytest.fixture
def ordered(graded):
    return partial(graded, check.in_order, "values, batch, length")


def test_a_step_for_each_rank_is_right(stepped):
    assert stepped(STEPS) == "Correct: 6 loops, and the schedule is where you say."


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return calls // passes", "With calls=6, ranks=2, passes=1, split_batches=False: you say 6, the scheduler"),
        ("return calls // passes", "made 12. That is the number of optimizer steps"),
        ("return calls // passes * ranks", "The batches of the loader are split"),
        (changed(STEPS, "calls // passes", "calls"), "A call within an accumulation does nothing."),
        (changed(STEPS, "//", "/"), "A step that is not complete does not count."),
        (changed(STEPS, "steps * ranks", "steps // ranks"), "More ranks make the schedule faster, not slower."),
        ("return str(calls)", "Your function returned str, not a number."),
        ("return step", "your answer raised NameError"),
    ],
)
def test_a_wrong_number_of_steps_is_told_why(stepped, body, sentence):
    told = stepped(body)
    assert told.startswith("Not yet. ")
    assert sentence in told


def test_batches_in_turn_are_par(ordered):
    assert ordered(ORDER) == (
        "Correct: 10 data sets on 2, 3 and 4 ranks, every row once and in order. You made 1 call, par is 1."
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (changed(ORDER, "torch.stack(batches, dim=1).flatten()[:length]", "torch.cat(parts)"), "one rank after anoth"),
        (changed(ORDER, "dim=1", "dim=0"), "That is one rank after another"),
        (changed(ORDER, "[:length]", ""), "With 2 ranks and 7 rows in batches of 2: rank 0: the values are [7, 27,"),
        (changed(ORDER, "[:length]", ""), "but the padding is still there: there are 7 rows."),
        (changed(ORDER, "[:length]", "[-length:]"), "You cut the head off; the padding is at the end."),
        (changed(ORDER, "batches, dim=1", "parts, dim=1"), "Accelerate deals whole batches."),
        ("return values", "Those are the values of this rank alone."),
        (changed(ORDER, "return ", "result = "), "the answer is nothing (None), a tensor is expected."),
        ("if dist.get_rank():\n    return values\n" + ORDER.strip(), "rank 0 waits in all_gather for rank 1"),
    ],
)
def test_wrong_orders_are_told_why(ordered, body, sentence):
    told = ordered(body)
    assert told.startswith("Not yet. With 2 ranks")
    assert sentence in told


def test_the_rows_are_dealt_as_accelerate_deals_them():
    loader = pytest.importorskip("accelerate.data_loader", reason="make environment FRAMEWORKS=1")
    from torch.utils.data import BatchSampler

    for size, sets in frameworks.DEALT.items():
        for length, batch in sets:
            sampler = BatchSampler(range(length), batch, drop_last=False)
            shards = [loader.BatchSamplerShard(sampler, size, rank) for rank in range(size)]
            read = [[row for rows in shard for row in rows] for shard in shards]
            assert frameworks.dealt(length, batch, size) == read


@pytest.mark.parametrize("split", [False, True])
def test_accelerate_makes_that_many_steps(split, monkeypatch):
    scheduler = pytest.importorskip("accelerate.scheduler", reason="make environment FRAMEWORKS=1")
    import torch

    monkeypatch.setattr(scheduler, "AcceleratorState", lambda: SimpleNamespace(num_processes=3))
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    inner = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, 12)
    optimizer.step()
    optimizer.step_was_skipped = False
    scheduler.AcceleratedScheduler(inner, optimizer, split_batches=split).step()
    assert inner.last_epoch == (1 if split else 3)
