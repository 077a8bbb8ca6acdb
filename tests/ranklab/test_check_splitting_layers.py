"""The graders of *splitting-layers*: right answers pass, each classic mistake is told its own sentence."""

from itertools import combinations, pairwise

import pytest
import torch

from ranklab import check
from ranklab.check.model_parallel import splitting_layers as graders

BACK = "    dist.recv(gradient, src=rank + 1)\n"
RIGHT = """
import torch.distributed as dist
rank, last = dist.get_rank(), dist.get_world_size() - 1
if rank > 0:
    dist.recv(x, src=rank - 1)
    x.requires_grad_()
y = loss_of(stage(x)) if rank == last else stage(x)
gradient = y.detach().contiguous().clone() if rank < last else None
if rank < last:
    dist.send(gradient, dst=rank + 1)
    dist.recv(gradient, src=rank + 1)
if y.requires_grad:
    y.backward(gradient)
if rank > 0:
    dist.send(x.grad.contiguous(), dst=rank - 1)
return y
"""


def function(body):
    """A function as a notebook's cell has it: it travels by value."""
    text = "def answer(stage, x, loss_of):\n" + "".join(f"    {line}\n" for line in body.strip().splitlines())
    names = {"__name__": "__main__"}
    exec(compile(text, "ipykernel_1/2.py", "exec"), names)
    return names["answer"]


def changed(*pairs):
    body = RIGHT
    for old, new in pairs:
        assert old in body, old
        body = body.replace(old, new)
    return body


@pytest.fixture
def told(notebook, capsys):
    """What the grader says about the body of a ``chain``."""

    def say(body):
        check.chain(function(body))
        told = capsys.readouterr().out
        assert told.count("\n") == 1, "one sentence"
        return told

    return say


def test_a_right_chain_is_told_so(told):
    assert told(RIGHT) == (
        "Correct: 5 models on 2, 3 and 4 ranks, each gradient that of the uncut model. Messages per rank: 2.\n"
    )


def test_messages_under_way_are_messages_too(told):
    """A chain with isend and irecv is as right as one with send and recv."""
    pairs = [
        ("dist.send(gradient, dst=rank + 1)", "dist.isend(gradient, dst=rank + 1).wait()"),
        ("dist.recv(gradient, src=rank + 1)", "dist.irecv(gradient, src=rank + 1).wait()"),
    ]
    assert told(changed(*pairs)).startswith("Correct")


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        (
            [
                (BACK, "    return None\n"),
                ("if rank > 0:\n    dist.send", "if 0:\n    dist.send"),
            ],
            "rank 0: 0.weight.grad is None: no gradient came back to its stage",
        ),
        ([("    x.requires_grad_()\n", "")], "raised RuntimeError: with layers of several widths, AttributeError"),
        (
            [
                (
                    "    dist.recv(gradient, src=rank + 1)\n",
                    "    dist.recv(gradient, src=rank + 1)\n    gradient.fill_(1)\n",
                )
            ],
            "Backward began from ones: begin from what the next rank sent.",
        ),
        (
            [("y.backward(gradient)", "y.backward(gradient, retain_graph=True)\n    y.backward(gradient)")],
            "That is twice the right one: run each backward once.",
        ),
        ([("return y", "return None")], "the last rank should return the loss, it returned nothing"),
        ([("return y", "return y.detach() * 2")], "rank 1, the loss: element 0 is"),
        ([(".contiguous().clone()", ".clone()")], "with stages whose output is not contiguous, RuntimeError"),
        ([(".contiguous().clone()", ".contiguous()")], "rank 0: 0.weight.grad: element 0 is"),
        ([("if y.requires_grad:\n    y", "y")], "with a frozen first stage, RuntimeError"),
        (
            [("    x.requires_grad_()\n", ""), ("y = loss", "x.requires_grad_()\ny = loss")],
            "with a first stage that takes whole numbers, RuntimeError",
        ),
        (
            [("y = loss", "stage.requires_grad_()\ny = loss")],
            "With 2 ranks and a frozen first stage: rank 0: 0.weight is frozen, and now it has a gradient.",
        ),
        ([("y = loss", "stage.zero_grad()\ny = loss")], "Only the second batch is in it"),
        ([("rank, last", "dist.barrier()\nrank, last")], "right, but the answer calls barrier"),
        (
            [
                ("    dist.send(gradient, dst=rank + 1)\n", "    dist.send(gradient, dst=rank + 1)\n" * 2),
                ("    dist.recv(x, src=rank - 1)\n", "    dist.recv(x, src=rank - 1)\n" * 2),
            ],
            "right, but rank 0 sent 2 messages, par is 1",
        ),
        ([("if rank > 0:\n    dist.send", "if 0:\n    dist.send")], "rank 0 receives from rank 1, which sends nothing"),
    ],
)
def test_a_wrong_chain_is_told_why(told, pairs, sentence):
    said = told(changed(*pairs))
    assert said.startswith("Not yet. With 2 ranks")
    assert sentence in said


def best(seconds, ranks):
    inner = combinations(range(1, len(seconds)), ranks - 1)
    cuts = ([0, *some, len(seconds)] for some in inner)
    return min(cuts, key=lambda cut: max(sum(seconds[first:last]) for first, last in pairwise(cut)))


def said(capsys, answer):
    check.best_cut(answer)
    told = capsys.readouterr().out
    assert told.count("\n") == 1, "one sentence"
    return told


def as_few_as_possible(seconds, ranks):
    """Raise the limit until the stages are few enough: with ranks left over, where fewer stages are as fast."""
    for limit in sorted(sum(seconds[a:b]) for a in range(len(seconds)) for b in range(a + 1, len(seconds) + 1)):
        cut = [0]
        for number in range(len(seconds)):
            if sum(seconds[cut[-1] : number + 1]) > limit:
                cut.append(number)
        if limit >= max(seconds) and len(cut) <= ranks:
            break
    return cut + [len(seconds)] * (ranks + 1 - len(cut))


def test_a_best_cut_is_told_so(capsys):
    assert said(capsys, best) == "Correct: 8 of 8, no slowest stage could be faster.\n"
    assert said(capsys, lambda seconds, ranks: tuple(best(seconds, ranks))).startswith("Correct")
    assert said(capsys, lambda seconds, ranks: [float(each) for each in best(seconds, ranks)]).startswith("Correct")
    assert said(capsys, lambda seconds, ranks: torch.tensor(best(seconds, ranks)).double()).startswith("Correct")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda s, n: [round(r * len(s) / n) for r in range(n + 1)], "Equal numbers of pieces are not equal times."),
        (lambda s, n: graders._greedy(s, n), "leaves the rest to the last."),
        (lambda s, n: best(s, n)[1:-1], "boundaries are expected, from 0 to 6, ends included."),
        (lambda s, n: [1, *best(s, n)[1:]], "pieces belong to nobody."),
        (lambda s, n: [*best(s, n)[:-1], len(s) - 1], "pieces belong to nobody."),
        (lambda s, n: [0] * n + [len(s)], "rank 0 has no piece."),
        (as_few_as_possible, "pieces of 5, 8, 2, 1 on 4 ranks: your answer is [0, 1, 2, 4, 4]; rank 3 has no piece."),
        (lambda s, n: best(s[::-1], n), "is possible."),
        (lambda s, n: [float(b) + 0.5 for b in best(s, n)], "boundaries are whole numbers."),
        (lambda s, n: None, "a list of boundaries is expected."),
        (lambda s, n: [0, float("inf"), len(s)], "a list of boundaries is expected."),
        (lambda s, n: {}[n], "your answer raised KeyError"),
    ],
)
def test_a_wrong_cut_is_told_why(capsys, wrong, sentence):
    told = said(capsys, wrong)
    assert told.startswith("Not yet. ")
    assert sentence in told


@pytest.mark.parametrize("kind", graders.KINDS)
def test_the_expected_gradients_reach_every_stage_that_learns(kind):
    gradients, losses = graders._alone(kind, 4)
    for rank, stage in enumerate(gradients):
        frozen = kind == "frozen" and rank == 0
        for gradient in stage.values():
            assert gradient is None if frozen else gradient.count_nonzero()
    assert len(losses) == (2 if kind == "twice" else 1)
    assert all(torch.isfinite(loss) for loss in losses)
