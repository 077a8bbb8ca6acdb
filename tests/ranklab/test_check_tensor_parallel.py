"""The graders of the chapter *tensor-parallel*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed

from ranklab import check

LAYER = """
import torch.nn.functional as F

class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, term):
        term = term.clone()
        dist.all_reduce(term)
        return term

    @staticmethod
    def backward(ctx, gradient):
        return gradient

y = Leave.apply(x @ weight.T)
return y if bias is None else y + bias
"""
ROWS = """
group = heads // kv_heads
queries = list(range(rank * heads // ranks, (rank + 1) * heads // ranks))
keys = sorted({head // group for head in queries})
wanted = queries + [heads + head for head in keys] + [heads + kv_heads + head for head in keys]
return [head * width + row for head in wanted for row in range(width)]
"""
LAST = "return y if bias is None else y + bias"
EARLY = changed(LAYER, "x @ weight.T", "F.linear(x, weight, bias)").replace(LAST, "return y")
FIRST = EARLY.replace("bias)", "bias if dist.get_rank() == 0 else None)")
PARTS = EARLY.replace("bias)", "None if bias is None else bias / dist.get_world_size())")
TWICE = changed(
    LAYER,
    "return gradient",
    "gradient = gradient.clone()\n        dist.all_reduce(gradient)\n        return gradient",
)
EVEN = changed(
    LAYER,
    "x @ weight.T",
    "x[..., : 12 // dist.get_world_size()] @ weight[:, : 12 // dist.get_world_size()].T",
)
BY_HAND = """
class Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        term = x @ weight.T
        dist.all_reduce(term)
        return term

    @staticmethod
    def backward(ctx, gradient):
        weight.grad = gradient.flatten(0, -2).T @ ctx.x.flatten(0, -2)
        return gradient @ weight

y = Layer.apply(x)
return y if bias is None else y + bias
"""
LINEAR = "import torch.nn.functional as F\n"
PLAIN = "y = (x @ weight.T).detach()\ndist.all_reduce(y)\nreturn "


@pytest.fixture
def layer(graded):
    return partial(graded, check.row_linear, "x, weight, bias")


@pytest.fixture
def rows(graded):
    return partial(graded, check.qkv_rows, "heads, kv_heads, width, rank, ranks")


def test_a_bias_after_the_sum_is_right(layer):
    assert layer(LAYER) == (
        "Correct: 5 layers on 2, 3 and 4 ranks, output and gradients those of one process. "
        "Collectives per step: 1, par 1."
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (EARLY, "With 2 ranks and 12 columns and a bias: rank 0, the output: element 0 is"),
        (EARLY, "The bias is in it 2 times."),
        (changed(LAYER, LAST, "return y"), "The bias is missing."),
        (LINEAR + "return F.linear(x, weight)", "That is this rank's term: nobody added."),
        (LINEAR + "return F.linear(x, weight, bias)", "That is this rank's term and the bias: nobody added."),
        (FIRST, "rank 1: bias.grad is None: add the bias on every rank"),
        (PARTS, "the gradient of bias: element 0 is"),
        (PARTS, "That is 1/2 of the right one."),
        (TWICE, "the gradient of x: element 0 is"),
        (TWICE, "That is 2 times the right one: all ranks have the same loss, so it counts once."),
        (
            changed(LAYER, "return gradient", "dist.all_reduce(gradient.clone())\n        return gradient"),
            "right, but rank 0 calls 2 collectives in a step, par is 1.",
        ),
        (PLAIN + "y if bias is None else y + bias", "x.grad is None: autograd lost it on the way."),
        (PLAIN + "y + bias.detach()", "x.grad is None: autograd does not see the way"),
        (changed(LAYER, LAST, "return y + bias"), "TypeError: unsupported"),
        (changed(LAYER, LAST, "result = y + bias"), "the answer is nothing (None), a tensor is expected."),
        (EVEN, "With 4 ranks and ranks with different numbers of columns: rank 0, the output: element "),
        (EVEN, "The ranks have 1, 2, 3 and 4 columns."),
        (BY_HAND, "and a frozen matrix: rank 0: the matrix is frozen, and your answer gives it a gradient."),
        (changed(LAYER, "y = Leave", "weight.register_hook(print)\ny = Leave"), "with a frozen matrix, RuntimeError: "),
        (changed(LAYER, "x @ weight.T", "torch.einsum('bi,oi->bo', x, weight)"), "an input of three dimensions"),
    ],
)
def test_a_wrong_layer_is_told_why(layer, body, sentence):
    told = layer(body)
    assert told.startswith("Not yet. With ")
    assert sentence in told


def test_the_rows_of_the_heads_are_right(rows):
    assert rows(ROWS) == "Correct: 9 models, every rank has the rows of its heads."


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "whole = (heads + 2 * kv_heads) * width\n"
            "return list(range(rank * whole // ranks, (rank + 1) * whole // ranks))",
            "4 heads, 4 of k and v, 2 rows each, rank 0 of 2: your rows are [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], "
            "those of its heads [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19]. Cut q, k and v each, not all in one.",
        ),
        (changed(ROWS, "rank * heads // ranks, (rank + 1) * heads // ranks", "rank, heads, ranks"), "heads in a row."),
        (changed(ROWS, "sorted({head // group for head in queries})", "[h // group for h in queries]"), "need it once"),
        (changed(ROWS, "sorted({head // group for head in queries})", "queries"), "There are fewer heads of k and v"),
        (changed(ROWS, "sorted({head // group for head in queries})", "list(range(kv_heads))"), "own queries only."),
        (changed(ROWS, "{head // group", "{head % kv_heads"), "rank 0 of 2: your rows are"),
        (changed(ROWS, "wanted = queries + ", "wanted = queries or "), "k and v are missing."),
        (changed(ROWS, "return [head * width", "return wanted\nreturn [head * width"), "A head has several rows."),
        (
            changed(ROWS, "wanted = queries + [", "wanted = [").replace("keys]\nreturn", "keys] + queries\nreturn"),
            "The order is another",
        ),
        ("return None", "your answer is None, a list of rows is expected."),
        (changed(ROWS, "heads // kv_heads\n", "heads / kv\n"), "your answer raised NameError"),
    ],
)
def test_wrong_rows_are_told_why(rows, body, sentence):
    told = rows(body)
    assert told.startswith("Not yet. ")
    assert sentence in told
