"""The graders of the chapter *talking-less*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed

from ranklab import check

ACCUMULATED = """
*early, last = micro_batches
for micro_batch in early:
    with ddp.no_sync():
        (loss_of(ddp, micro_batch) / len(micro_batches)).backward()
(loss_of(ddp, last) / len(micro_batches)).backward()
"""
HOOK = """
small = bucket.buffer().to(torch.bfloat16) / dist.get_world_size()
work = dist.all_reduce(small, async_op=True)
return work.get_future().then(lambda done: done.value()[0].float())
"""


@pytest.fixture
def accumulated(graded):
    return partial(graded, check.accumulated, "ddp, loss_of, micro_batches")


@pytest.fixture
def hooked(graded):
    return partial(graded, check.half_hook, "state, bucket")


def test_one_exchange_with_the_last_micro_batch_is_right(accumulated):
    assert accumulated(ACCUMULATED) == (
        "Correct: 9 gradients on 2, 3 and 4 ranks are those of one process, with one exchange each."
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (changed(ACCUMULATED, " / len(micro_batches)", ""), "2 times the right one: divide each loss by 2."),
        (
            "for each in micro_batches:\n    (loss_of(ddp, each) / len(micro_batches)).backward()",
            "the gradient is right, but there were 2 calls of all_reduce, par is 1: put forward and backward",
        ),
        (
            "for each in micro_batches:\n    loss = loss_of(ddp, each) / len(micro_batches)\n"
            "    with ddp.no_sync():\n        loss.backward()",
            "there were 2 calls of all_reduce",
        ),
        (
            "with ddp.no_sync():\n    for each in micro_batches:\n"
            "        (loss_of(ddp, each) / len(micro_batches)).backward()",
            "the ranks exchanged nothing",
        ),
        (
            "first, *others = micro_batches\n(loss_of(ddp, first) / len(micro_batches)).backward()\n"
            "for each in others:\n    with ddp.no_sync():\n"
            "        (loss_of(ddp, each) / len(micro_batches)).backward()",
            "you exchanged before the last micro-batch, so the gradients after it were not averaged.",
        ),
        (
            changed(ACCUMULATED, "/ len(micro_batches)", "/ len(micro_batches) / dist.get_world_size()"),
            "divided by the number of ranks, which DDP had done",
        ),
        (
            changed(ACCUMULATED, " / len(micro_batches)", " * dist.get_world_size()"),
            "the right one: DDP divides",
        ),
        ("(loss_of(ddp, micro_batches[-1]) / len(micro_batches)).backward()", "only the last micro-batch"),
        ("pass", "no gradient is left in .grad."),
        (changed(ACCUMULATED, "micro_batches)", "batches)"), "your function raised NameError"),
    ],
)
def test_a_wrong_accumulation_is_told_why(accumulated, body, sentence):
    told = accumulated(body)
    assert told.startswith("Not yet. With 2 ranks")
    assert sentence in told


def test_two_bytes_a_number_are_right(hooked):
    told = hooked(HOOK)
    assert told.startswith("Correct: on 2, 3 and 4 ranks 5")
    assert told.endswith("% of the bytes, and a loss within 1 % of DDP's.")


def test_float16_is_right(hooked):
    assert hooked(changed(HOOK, "bfloat16", "float16")).startswith("Correct")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (changed(HOOK, " / dist.get_world_size()", ""), "the gradient is 2 times that of DDP: with a hook, dividing"),
        (
            changed(HOOK, "done.value()[0].float()", "done.value()[0].float() / dist.get_world_size()"),
            "divided twice by the number of ranks.",
        ),
        (changed(HOOK, ".to(torch.bfloat16)", ""), "sends 100% of DDP's bytes, at most 55% are allowed."),
        (
            "done = torch.futures.Future()\ndone.set_result(bucket.buffer())\nreturn done",
            "the ranks end with different weights",
        ),
        (
            "small = bucket.buffer()[::2] / dist.get_world_size()\nwork = dist.all_reduce(small, async_op=True)\n"
            "full = torch.zeros_like(bucket.buffer())\n"
            "def fill(done):\n    full[::2] = done.value()[0]\n    return full\n"
            "return work.get_future().then(fill)",
            "% of the bytes, but the loss is ",
        ),
        ("return bucket.buffer()", "your hook raised "),
        (changed(HOOK, "torch.bfloat16", "torch.half_of_it"), "your hook raised "),
    ],
)
def test_a_wrong_hook_is_told_why(hooked, body, sentence):
    told = hooked(body)
    assert told.startswith("Not yet. With 2 ranks and 25 steps: ")
    assert sentence in told


def test_a_parameter_of_another_name_is_told(graded):
    told = graded(check.half_hook, "state, grads", "return grads")
    assert "KeyError: 'bucket'. The hook's second parameter must be called bucket." in told
