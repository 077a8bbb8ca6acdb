"""The graders of the chapter *meshes*: right answers and classic mistakes, each told in its own sentence."""

from itertools import product
from math import prod

import pytest
import torch

from ranklab import check
from ranklab.check.model_parallel import meshes


def said(capsys, grader, answer):
    grader(answer)
    told = capsys.readouterr().out
    assert told.count("\n") == 1, "one sentence"
    return told.strip()


def group(shape, dimension, rank):
    stride = prod(shape[dimension + 1 :])
    first = rank - rank // stride % shape[dimension] * stride
    return [first + place * stride for place in range(shape[dimension])]


def by_torch(shape, dimension, rank):
    table = torch.arange(prod(shape)).view(shape).movedim(dimension, -1).reshape(-1, shape[dimension])
    return table[(table == rank).any(1)][0]


def neighbours(shape, dimension, rank):
    first = rank - rank % shape[dimension]
    return list(range(first, first + shape[dimension]))


def columns(shape, dimension, rank):
    return group(shape[::-1], len(shape) - 1 - dimension, rank)


@pytest.mark.parametrize("answer", [group, by_torch, lambda *case: tuple(group(*case))])
def test_the_groups_of_a_mesh_are_right(capsys, answer):
    count = sum(len(shape) * prod(shape) for shape in meshes.SHAPES)
    assert said(capsys, check.mesh_group, answer) == (
        f"Correct: {count} groups of {len(meshes.SHAPES)} meshes are those that init_device_mesh makes."
    )


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            neighbours,
            "mesh 2 × 2, dimension 0, rank 0: your group is [0, 1], expected [0, 2]. "
            "Those are neighbours: only the last dimension.",
        ),
        (lambda s, d, r: [r + k for k in range(s[d])], "mesh 2 × 2, dimension 0, rank 0: your group is [0, 1]"),
        (lambda s, d, r: [k for k in group(s, d, r) if k != r], "Rank 0 itself is missing."),
        (lambda s, d, r: group(s, d, r)[::-1], "The ranks are right: put them in the order of their places."),
        (lambda s, d, r: [k + 1 for k in group(s, d, r)], "mesh 2 × 2, dimension 0, rank 0: your group is [1, 3]"),
        (lambda s, d, r: [k * 4 for k in group(s, d, r)], "The ranks are 0 to 3."),
        (lambda s, d, r: r, "a list of ranks is expected"),
        (lambda s, d, r: s[9], "your answer raised IndexError"),
        (lambda s, d, r: group(s, d, r) if d == 0 else columns(s, d, r), "Ranks fill a mesh row by row"),
    ],
)
def test_a_wrong_group_is_told_why(capsys, answer, sentence):
    told = said(capsys, check.mesh_group, answer)
    assert told.startswith("Not yet.")
    assert sentence in told


def test_the_groups_expected_are_those_of_a_table():
    for shape in meshes.SHAPES:
        for dimension, rank in product(range(len(shape)), range(prod(shape))):
            assert meshes._group(shape, dimension, rank) == by_torch(shape, dimension, rank).tolist()


def choose(nodes, per_node, parameters, activation, calls, room, fast, slow):
    best = None
    for tensor in range(1, nodes * per_node + 1):
        data, rest = divmod(nodes * per_node, tensor)
        if rest or 16 * parameters / tensor > room:
            continue
        across = slow if nodes > 1 else fast
        inside = fast if per_node % tensor == 0 else slow
        gradients = 2 * (data - 1) / data * 4 * parameters / tensor * across
        took = gradients + calls * 2 * (tensor - 1) / tensor * activation / data * inside
        if best is None or took < best[0]:
            best = took, (data, tensor)
    return best[1]


def test_the_fastest_mesh_that_fits_is_right(capsys):
    assert said(capsys, check.choose_mesh, choose) == "Correct: 24 of 24: each fits, and none that fits is faster."


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda nodes, per_node, *_: (nodes, per_node), "You always fill the node with tensor"),
        (lambda *case: meshes._meshes(case)[0], "The smallest tensor that fits is not always the fastest."),
        (lambda *case: choose(*case[:5], float("inf"), *case[6:]), "leave out first what does not fit."),
        (lambda *case: choose(*case[:7], case[6] if case[0] == 1 else case[7])[::-1], "of 24 are right"),
        (
            lambda *case: min(meshes._meshes(case), key=lambda mesh: meshes._seconds(case, *mesh, crosses=False)),
            "leaves it, and pays slow.",
        ),
        (
            lambda *case: min(meshes._meshes(case), key=lambda mesh: meshes._seconds(case, *mesh, share=False)),
            "Cut what is sent: gradients by tensor, activations by data.",
        ),
        (meshes.SLIPS[5][0], "each sends 2(N-1)/N of the bytes, and a single rank none."),
        (meshes.SLIPS[6][0], "each sends 2(N-1)/N of the bytes."),
        (lambda nodes, *_: (nodes, 1), "which are 2 ranks."),
        (lambda nodes, per_node, *_: (nodes * per_node, 1), "a rank holds 16 GB and has room for 8."),
        (lambda *_: 8, "your answer is 8, a pair (data, tensor) of whole numbers is expected."),
        (lambda *_: (8.0, 1), "a pair (data, tensor) of whole numbers is expected."),
        (lambda *case: case[9], "your answer raised IndexError"),
    ],
)
def test_a_wrong_mesh_is_told_why(capsys, answer, sentence):
    told = said(capsys, check.choose_mesh, answer)
    assert told.startswith("Not yet. ")
    assert sentence in told


def test_every_slip_is_wrong_somewhere_and_every_best_mesh_is_clear():
    for pick, words in meshes.SLIPS:
        assert any(meshes._wrong(case, *pick(*case)) for case in meshes.CASES), words
    for case in meshes.CASES:
        first, second = sorted(meshes._seconds(case, *mesh) for mesh in meshes._meshes(case))[:2]
        assert second > 1.03 * first
