"""The graders of the chapter *sharded*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed

from ranklab import check

HELD = """
numbers = 0
for rows, *columns in shapes:
    part = -(-rows // ranks)
    mine = min(part, max(0, rows - rank * part))
    for width in columns:
        mine = mine * width
    numbers += mine
return 16 * numbers
"""
STEP = """
import torch
from torch.nn.functional import pad
rank, ranks = dist.get_rank(), dist.get_world_size()
for weight in {id(weight): weight for weight in weights}.values():
    if weight.grad is None:
        continue
    missing = -weight.numel() % ranks
    gradient = pad(weight.grad.flatten(), (0, missing))
    pieces = torch.empty_like(gradient)
    dist.all_to_all_single(pieces, gradient)
    mean = pieces.view(ranks, -1).mean(0)
    velocity = state.setdefault(id(weight), torch.zeros_like(mean))
    velocity.mul_(0.9).add_(mean)
    whole = pad(weight.data.flatten(), (0, missing))
    mine = whole.chunk(ranks)[rank] - 0.1 * velocity
    dist.all_gather_single(whole, mine)
    weight.data.copy_(whole[: weight.numel()].view_as(weight))
"""
REDUCED = """pieces = torch.empty_like(gradient)
    dist.all_to_all_single(pieces, gradient)
    mean = pieces.view(ranks, -1).mean(0)"""
GATHERED = """pieces = [torch.empty_like(gradient) for _ in range(ranks)]
    dist.all_gather(pieces, gradient)
    mean = torch.stack(pieces).mean(0).chunk(ranks)[rank].clone()"""
LISTS = """
import torch
rank, ranks = dist.get_rank(), dist.get_world_size()
done = []
for weight in weights:
    if weight.grad is None or any(weight is other for other in done):
        continue
    done.append(weight)
    size = weight.numel()
    part = -(-size // ranks)
    padded = torch.zeros(part * ranks)
    padded[:size] = weight.grad.flatten()
    mean = torch.zeros(part)
    dist.reduce_scatter(mean, [piece.clone() for piece in padded.chunk(ranks)])
    state[len(done)] = 0.9 * state.get(len(done), torch.zeros(part)) + mean / ranks
    whole = torch.zeros(part * ranks)
    whole[:size] = weight.detach().flatten()
    pieces = [torch.zeros(part) for _ in range(ranks)]
    dist.all_gather(pieces, whole[rank * part : (rank + 1) * part] - 0.1 * state[len(done)])
    with torch.no_grad():
        weight.copy_(torch.cat(pieces)[:size].reshape(weight.shape))
"""
FLAT = """
import torch
from torch.nn.functional import pad
rank, ranks = dist.get_rank(), dist.get_world_size()
weights = [weight for weight in {id(weight): weight for weight in weights}.values() if weight.grad is not None]
missing = -sum(weight.numel() for weight in weights) % ranks
gradient = pad(torch.cat([weight.grad.flatten() for weight in weights]), (0, missing))
whole = pad(torch.cat([weight.data.flatten() for weight in weights]), (0, missing))
mean = torch.empty(len(whole) // ranks)
dist.reduce_scatter_single(mean, gradient)
velocity = state.setdefault("velocity", torch.zeros_like(mean))
velocity.mul_(0.9).add_(mean / ranks)
dist.all_gather_single(whole, whole.chunk(ranks)[rank] - 0.1 * velocity)
for weight, new in zip(weights, whole.split([weight.numel() for weight in weights] + [missing] * (missing > 0))):
    weight.data.copy_(new.view_as(weight))
"""


@pytest.fixture
def told(graded):
    return partial(graded, check.held_bytes, "shapes, rank, ranks")


@pytest.fixture
def stepped(graded):
    return partial(graded, check.zero1_step, "weights, state")


def test_what_a_rank_keeps_is_right(told):
    assert told(HELD) == "Correct: 3 models on 2, 3 and 4 ranks keep what you say, to the byte."


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("mine = min(part, max(0, rows - rank * part))", "mine = rows", "That is the whole model, as under DDP."),
        ("return 16", "return 4", "With 2 ranks and the shapes [(12, 4)]: rank 0: you say 96 bytes, it keeps 384."),
        ("return 16", "return 4", "Those are the weights alone: a gradient and two moments come to each of them."),
        ("return 16", "return 8", "Weights and gradients are two of four: Adam keeps two moments."),
        ("return 16", "return 12", "Adam keeps two moments for each weight."),
        ("mine = min(part, max(0, rows - rank * part))", "mine = part", "rank 1: you say 192 bytes, it keeps 128."),
        ("mine = min(part, max(0, rows - rank * part))", "mine = part", "That is the first rank's part"),
        (
            "mine = min(part, max(0, rows - rank * part))",
            "mine = rows // ranks + (rank < rows % ranks)",
            "With 4 ranks and the shapes [(5, 3), (5,)]: rank 1: you say 64 bytes, it keeps 128. The rows are not",
        ),
        ("mine = min(part, max(0, rows - rank * part))", "mine = rows / ranks", "The cut is made by whole rows"),
        (
            "mine = min(part, max(0, rows - rank * part))",
            "mine = min(part, rows - rank * part)",
            "rank 2: you say 80 bytes, it keeps 192.",
        ),
        ("return 16", "numbers = 16", "your answer is None, it should be a number of bytes."),
        ("rows // ranks", "rows // many", "NameError: name 'many' is not defined"),
    ],
)
def test_wrong_bytes_are_told_why(told, old, new, sentence):
    words = told(changed(HELD, old, new))
    assert words.startswith("Not yet. With ")
    assert sentence in words


def test_a_share_of_each_weight_is_par(stepped):
    assert stepped(STEP) == (
        "Correct: three steps on 2, 3 and 4 ranks give the weights of one process. On 4 ranks state has at most 104 "
        "bytes, par is 104; a rank sent 1872, par is 1872; at its peak it had 588, par is 888."
    )


def test_lists_of_pieces_are_fewer_than_seven_copies(stepped):
    assert "state has at most 104 bytes, par is 104; a rank sent 1872, par is 1872; at its peak it had" in stepped(
        LISTS
    )


def test_a_sum_of_whole_gradients_is_right_and_sends_more(stepped):
    words = stepped(changed(STEP, REDUCED, "dist.all_reduce(gradient)\n    mean = gradient.chunk(ranks)[rank] / ranks"))
    assert "a rank sent 2808, par is 1872; at its peak it had 476, par is 888." in words


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            FLAT,
            "on 4 ranks a rank has 1344 bytes at its peak, beside weights and gradients; par is 888. Finish one weight "
            "before you copy the next, so that only one is whole.",
        ),
        (
            changed(STEP, REDUCED, GATHERED),
            "bytes at its peak, beside weights and gradients; par is 888. You gather the gradients of all ranks: a "
            "reduce-scatter brings only the mean of a share.",
        ),
        (
            changed(STEP, "    velocity.mul_", "    weight.mean_gradient = mean\n    velocity.mul_"),
            "on 4 ranks 104 bytes stay alive between two calls that are in no weight, gradient or state: keep the "
            "shares of the velocities in state, and nothing else.",
        ),
        (
            changed(STEP, "torch.zeros_like(mean))", "mean.new_zeros(2 * len(mean))[: len(mean)])"),
            "the tensors in state take 208 bytes of memory, more than a share's 104. ZeRO-1 keeps a rank's share of "
            "each velocity; and a view keeps the whole memory alive.",
        ),
        (
            changed(STEP, "torch.zeros_like(mean))", "torch.zeros_like(weight).view(-1)[: len(mean)])"),
            "the tensors in state take 380 bytes of memory, as on one process. ZeRO-1 keeps a rank's share of each "
            "velocity; and a view keeps the whole memory alive.",
        ),
    ],
    ids=["all weights at once", "all ranks' gradients", "beside the state", "two shares", "whole in the state"],
)
def test_a_right_step_that_keeps_too_much_is_told_what(stepped, body, sentence):
    words = stepped(body)
    assert words.startswith("Not yet. The weights are right, but on 4 ranks ")
    assert words.endswith(sentence)


EVEN = changed(
    changed(STEP, "missing = -weight.numel() % ranks", "missing, even = 0, weight.numel() // ranks * ranks"),
    "weight.data.copy_(whole[: weight.numel()].view_as(weight))",
    "weight.data.view(-1)[:even] = whole",
).replace("flatten(), (0", "flatten()[:even], (0")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("mean(0)", "sum(0)", "With 2 ranks and 9 weights: rank 0: weights[0] of shape [6, 4]: element 0 is "),
        ("mean(0)", "sum(0)", "The gradients are added and not averaged: divide by the number of ranks."),
        ("state.setdefault(id(weight), torch.zeros_like(mean))", "torch.zeros_like(mean)", "The velocity is lost"),
        ("{id(weight): weight for weight in weights}.values()", "weights", "weights[5] and weights[6] are one tensor"),
        ("weight.data.copy_(", "weight.data.clone().copy_(", "The weight has not moved."),
        ("        continue", "        weight.data *= 0.9\n        continue", "It is frozen: its gradient is None"),
        (
            "        continue",
            "        if weight.requires_grad:\n            weight.data *= 0.9\n        continue",
            "It is unused: its gradient is None, and it has to stay as it is.",
        ),
        (
            "    if weight.grad is None:\n        continue\n",
            "",
            "weights[3] is frozen and weights[4] unused: their gradients are None, and they stay as they are.",
        ),
        ("weight.grad is None", "not weight.requires_grad", "weights[4] unused: their gradients are None"),
        ("-weight.numel() % ranks", "0", "weights[1] has 15 numbers, which 2 ranks do not divide: pad it with zeros."),
        ("dist.all_gather_single(whole, mine)", "whole.chunk(ranks)[rank].copy_(mine)", "of its 24 numbers are wrong"),
        ("import torch", "import torch, torched", "No module named 'torched'"),
    ],
)  # fmt: skip
def test_a_wrong_step_is_told_why(stepped, old, new, sentence):
    words = stepped(changed(STEP, old, new))
    assert words.startswith("Not yet. ")
    assert sentence in words


def test_a_tail_that_stays_is_told(stepped):
    assert "The first 14 are right: 2 ranks do not divide 15, so pad with zeros." in stepped(EVEN)


def test_a_step_without_the_others_is_told(stepped):
    body = """
for weight in weights:
    if weight.grad is not None:
        velocity = 0.9 * state.get(id(weight), 0) + weight.grad
        state[id(weight)] = velocity
        weight.data -= 0.1 * velocity
"""
    assert "That is a step with this rank's own gradient." in stepped(body)
