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


@pytest.fixture
def told(graded):
    return partial(graded, check.held_bytes, "shapes, rank, ranks")


@pytest.fixture
def stepped(graded):
    return partial(graded, check.zero1_step, "weights, state")


def test_what_a_rank_keeps_is_right(told):
    assert told(HELD) == "Correct: 9 models on 2, 3 and 4 ranks keep what you say, to the byte."


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
        "Correct: three steps on 2, 3 and 4 ranks give the weights of one process. On 4 ranks state has at most 52 "
        "bytes, par is 52; a rank sent 936, par is 936."
    )


def test_one_flat_vector_of_all_weights_keeps_less(stepped):
    body = """
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
    assert "On 4 ranks state has at most 48 bytes, par is 52; a rank sent 864, par is 936." in stepped(body)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("mean(0)", "sum(0)", "With 2 ranks and 7 weights: rank 0: weights[0] of shape [6, 4]: element 0 is "),
        ("mean(0)", "sum(0)", "The gradients are added and not averaged: divide by the number of ranks."),
        ("state.setdefault(id(weight), torch.zeros_like(mean))", "torch.zeros_like(mean)", "The velocity is lost"),
        ("{id(weight): weight for weight in weights}.values()", "weights", "weights[5] and weights[6] are one tensor"),
        ("weight.data.copy_(", "weight.data.clone().copy_(", "The weight has not moved."),
        ("        continue", "        weight.data *= 0.9\n        continue", "It is frozen: its gradient is None"),
        ("    if weight.grad is None:\n        continue\n", "", "'NoneType' object has no attribute 'flatten'"),
        ("-weight.numel() % ranks", "0", "raised RuntimeError"),
        ("dist.all_gather_single(whole, mine)", "whole.chunk(ranks)[rank].copy_(mine)", "of its 24 numbers are wrong"),
        ("torch.zeros_like(mean))", "torch.zeros_like(weight).view(-1)[: len(mean)])", "a view keeps the whole memory"),
    ],
)  # fmt: skip
def test_a_wrong_step_is_told_why(stepped, old, new, sentence):
    words = stepped(changed(STEP, old, new))
    assert words.startswith("Not yet. ")
    assert sentence in words


def test_a_step_without_the_others_is_told(stepped):
    body = """
for weight in weights:
    if weight.grad is not None:
        velocity = 0.9 * state.get(id(weight), 0) + weight.grad
        state[id(weight)] = velocity
        weight.data -= 0.1 * velocity
"""
    assert "That is a step with this rank's own gradient." in stepped(body)
