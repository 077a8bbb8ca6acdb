"""The grader of the chapter *tiny-ddp*: right answers pass, each classic mistake gets its own sentence."""

import inspect

import pytest
import torch.distributed as dist

from ranklab import check


def when_it_is_their_turn(gradients, ready):
    arrived, works = set(), []
    for place in ready:
        arrived.add(place)
        while len(works) in arrived:
            works.append(dist.all_reduce(gradients[len(works)], async_op=True))
    for work in works:
        work.wait()
    return [gradient / dist.get_world_size() for gradient in gradients]


def afterwards(gradients, ready):
    for gradient in gradients:
        dist.all_reduce(gradient)
        gradient /= dist.get_world_size()
    return gradients


def when_ready(gradients, ready):
    for place in ready:
        dist.all_reduce(gradients[place])
        gradients[place] /= dist.get_world_size()
    return gradients


def sums(gradients, ready):
    for gradient in gradients:
        dist.all_reduce(gradient)
    return gradients


def too_few(gradients, ready):
    return afterwards(gradients, ready)[:2]


def nothing(gradients, ready):
    return None


def alone(gradients, ready):
    return gradients


for function in list(globals().values()):
    if callable(function) and getattr(function, "__module__", "") == __name__:
        function.__module__ = "__main__"  # travels by value: a rank cannot import this file


@pytest.fixture(autouse=True)
def imports(notebook):
    """What an answer uses is looked up on the rank, where a chapter's first cells have defined it."""
    used = ["import torch.distributed as dist\n", inspect.getsource(afterwards)]
    assert notebook.px("\n".join(used)).error is None


@pytest.mark.parametrize("answer", [when_it_is_their_turn, afterwards])
def test_right_answers(notebook, answer, capsys):
    check.average_in_order(answer)
    assert capsys.readouterr().out.startswith("Correct: in 9 backwards")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (when_ready, "With 2 ranks and another order on rank 1: rank 0: gradient 0: "),
        (when_ready, "Different gradients were added: the ranks have to call in one order."),
        (sums, "That is the sum: divide it by the number of ranks."),
        (too_few, "rank 0 should return a list of 3 tensors."),
        (nothing, "rank 0 should return a list of 3 tensors."),
        (alone, "one process gets 1.5."),
    ],
)
def test_classic_mistakes(notebook, answer, sentence, capsys):
    check.average_in_order(answer)
    told = capsys.readouterr().out
    assert told.startswith("Not yet. ")
    assert sentence in told
