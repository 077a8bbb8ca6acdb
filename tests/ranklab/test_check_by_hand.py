"""The graders of the chapter *by-hand*: right answers, and the classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import answer, changed

from ranklab import check
from ranklab.check.data_parallel import by_hand
from ranklab.figures import charts

FLAT = """
trainable = [p for p in model.parameters() if p.requires_grad]
for dtype in dict.fromkeys(p.dtype for p in trainable):
    same = [p for p in trainable if p.dtype == dtype]
    for p in same:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    flat = torch.cat([p.grad.flatten() for p in same])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for p, part in zip(same, flat.split([p.numel() for p in same])):
        p.grad.copy_(part.view_as(p))
"""
LOOP = """
for p in model.parameters():
    if p.requires_grad:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
"""
LOSS = """
weight = weights.sum()
dist.all_reduce(weight)
return (losses * weights).sum() / weight * dist.get_world_size()
"""


@pytest.fixture
def averaged(graded):
    return partial(graded, check.average_gradients, "model")


@pytest.fixture
def weighted(graded):
    return partial(graded, check.weighted_loss, "losses, weights")


def test_one_call_for_each_dtype_is_par(averaged):
    assert averaged(FLAT) == (
        "Correct: 6 models on 2, 3 and 4 ranks. You made 21 calls in all, par is 21: one for each dtype."
    )


def test_one_call_for_each_parameter_is_right_and_stands_beside_par(averaged):
    assert "You made 63 calls in all, par is 21" in averaged(LOOP)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (changed(LOOP, "p.grad /= dist.get_world_size()", "pass"), "That is the sum: divide by the number of ranks."),
        (changed(LOOP, "p.grad /= dist", "p.grad /= dist.get_world_size() * dist"), "It was divided by 2 twice."),
        (changed(LOOP, "dist.all_reduce(p.grad)", "continue"), "That is the rank's own tensor, unchanged."),
        ("pass", "That is the rank's own tensor, unchanged."),
        (
            changed(LOOP, "p.grad)", "p.data)").replace("p.grad /=", "p.data /="),
            "it is the gradients that are averaged",
        ),
        (changed(LOOP, "if p.requires_grad:", "if True:"), "first.weight is frozen, and now it has a gradient."),
        (
            changed(LOOP, "p.grad = torch.zeros_like(p)", "continue"),
            "With 2 ranks: After 5 s: rank 0 waits in all_reduce for rank 1",
        ),
        (
            "for p in model.parameters():\n    dist.all_reduce(p.grad)\n    p.grad /= dist.get_world_size()",
            "ranks 0, 1 raised RuntimeError: with a frozen layer, TypeError",
        ),
        (
            changed(FLAT, "dict.fromkeys(p.dtype for p in trainable)", "[0]").replace("if p.dtype == dtype", ""),
            "192 bytes travelled, par is 144: joined, float32 became float64.",
        ),
        (
            changed(FLAT, "dict.fromkeys(p.dtype for p in trainable)", "[0]")
            .replace("if p.dtype == dtype", "")
            .replace("p.grad.flatten()", "p.grad.flatten().float()"),
            "float32 and float64: 96 bytes travelled, the gradients have 144: a wide dtype was narrowed on the way.",
        ),
        (
            "for layer in model.values():\n    for p in layer.parameters():\n"
            + "".join(f"    {line}\n" for line in LOOP.strip().splitlines()[1:]),
            "a tied weight is one parameter",
        ),
    ],
)
def test_a_wrong_average_is_told_why(averaged, body, sentence):
    assert sentence in averaged(body)


def test_dividing_by_those_who_have_a_gradient_is_told(averaged):
    body = """
for p in model.parameters():
    if p.requires_grad:
        users = torch.tensor(float(p.grad is not None))
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        dist.all_reduce(users)
        dist.all_reduce(p.grad)
        p.grad /= users
"""
    assert "one that has no gradient counts as zeros" in averaged(body)


def test_a_rank_left_without_gradient_is_told(averaged):
    body = changed(LOOP, "        if p.grad is None:", "        missing = p.grad is None\n        if p.grad is None:")
    body = changed(body, "size()\n", "size()\n        if missing:\n            p.grad = None\n")
    assert "other ranks have one: its model would go its own way" in averaged(body)


def test_one_all_reduce_of_one_number_is_par(weighted):
    assert weighted(LOSS) == (
        "Correct: 8 batches on 2, 3 and 4 ranks. Your loss makes 1 call of 4 bytes, par is 1 of 4."
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return (losses * weights).sum() / weights.sum()", "That is the mean of the ranks' means"),
        ("return (losses * weights).sum() / weights.sum().clamp(min=1e-9)", "That is the mean of the ranks' means"),
        (changed(LOSS, " * dist.get_world_size()", ""), "That is 1/2 of it: averaging divides by 2 once more."),
        (changed(LOSS, "/ weight *", "/ weight * dist.get_world_size() *"), "2 times the right one"),
        ("return (losses * weights).sum()", "That is a sum: divide by the weight of all ranks."),
        ("return (losses * weights).mean()", "You divided by the number of targets, not by their weight."),
        ("return losses.mean()", "The weights have no part in it."),
        (
            changed(LOSS, "return ", "loss = ") + "return torch.tensor(loss.item(), requires_grad=True)",
            "ranks 0, 1 raised ValueError: no gradient reaches the losses: compute the loss from them, not from item()",
        ),
        (changed(LOSS, "weights.sum()", "torch.zeros(1)"), "the gradient is NaN, and no rank's weights are all 0."),
        ("return 3.0", "should return a tensor of one element"),
        (
            "total = torch.stack([(losses * weights).sum().detach(), weights.sum()])\n"
            "if dist.get_rank() == 0:\n    dist.all_reduce(total)\nreturn (losses * weights).sum() / total[1]",
            "waits in all_reduce for rank 1",
        ),
    ],
)
def test_a_wrong_loss_is_told_why(weighted, body, sentence):
    told = weighted(body)
    assert told.startswith("Not yet. With 2 ranks")
    assert sentence in told


def test_a_rank_whose_weights_are_all_zero_is_told(weighted):
    body = changed(LOSS, "/ weight *", "/ weight * weights.sum() / weights.sum() *")
    assert "the gradient is NaN: the weights of rank 1 are all 0, and 0 / 0 is NaN." in weighted(body)


def test_every_case_has_a_target_that_counts():
    for size, tried in by_hand.COUNTS.items():
        assert all(len(counts) == size and sum(counts) for counts in tried)


def test_charts_share_their_axes_and_have_a_title_each():
    _, axes = charts(["a", "b", "c", "d"], "step", "loss")
    assert [each.get_title(loc="left") for each in axes] == ["a", "b", "c", "d"]
    axes[0].set_ylim(0, 3)
    assert axes[3].get_ylim() == (0, 3)


def test_the_group_of_the_reader_is_there_afterwards(notebook, capsys):
    notebook.px("import torch.distributed as dist\nif not dist.is_initialized(): dist.init_process_group()")
    check.weighted_loss(answer("losses, weights", LOSS))
    assert notebook.px("print(dist.get_world_size())").text == "ranks 0–3   4"
