"""Answers on 2, 3 and 4 ranks of a running world: what is tried, what is said, and what is left behind."""

import pytest
import torch
import torch.distributed as dist

from ranklab.check import grading, worlds
from ranklab.check.verdict import NotYet


def summed(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total


STUCK = """
def stuck(tensor):
    dist.recv(tensor, (dist.get_rank() + 1) % dist.get_world_size())


def absent(tensor):
    if dist.get_rank() > 0:
        dist.all_reduce(tensor)
    return tensor
"""
exec(compile(STUCK, "ipykernel_1/2.py", "exec"))  # as a notebook compiles a cell


def raising(tensor):
    return tensor[5]


def one_by_one(tensor):
    others = set(range(dist.get_world_size())) - {dist.get_rank()}
    sent = [dist.isend(tensor, other) for other in others]
    for other in others:
        dist.recv(tensor.clone(), other)
    for message in sent:
        message.wait()


def refused(round_):
    raise ConnectionError("no store")


for function in (summed, globals()["stuck"], globals()["absent"], raising, one_by_one, refused):
    function.__module__ = "__main__"  # travels by value: a rank cannot import this file


@pytest.fixture(autouse=True)
def imports(notebook):
    """What an answer uses is looked up on the rank, where a chapter's first cells have imported it."""
    assert notebook.px("import torch\nimport torch.distributed as dist").error is None


def test_every_size_dtype_and_stride_is_tried(notebook):
    cases = list(worlds.awkward())
    assert {case.size for case in cases} == {2, 3, 4}
    tensors = [case.arguments[0][0] for case in cases]
    assert {tensor.numel() for tensor in tensors} == {0, 1, 7, 9, 10, 11, 12, 1000}
    assert {tensor.dtype for tensor in tensors} == {torch.float32, torch.float64, torch.int64}
    assert not all(tensor.is_contiguous() for tensor in tensors)


@pytest.mark.parametrize("size", worlds.SIZES)
def test_lengths_leave_every_remainder(notebook, size):
    """A ring that was wrong where the length leaves 2 modulo 3 was taken."""
    lengths = {case.arguments[0][0].numel() for case in worlds.awkward(sizes=[size])}
    assert {length % size for length in lengths if length > size} == set(range(size))


def test_a_right_answer_equals_one_process_in_every_case(notebook):
    cases = list(worlds.awkward())
    for case, ranks in zip(cases, worlds.attempts(summed, cases), strict=True):
        wanted = sum(given for given, *_ in case.arguments)
        assert len(ranks) == case.size
        for (given,), attempt in zip(case.arguments, ranks, strict=True):
            assert worlds.difference(attempt.result, wanted) == ""
            assert attempt.calls == {"all_reduce": 1}
            assert torch.equal(attempt.given, given)


def test_messages_and_bytes_are_those_of_the_rank(notebook):
    case = worlds.Case(3, tuple((torch.ones(5),) for _ in range(3)), "5 elements of float32")
    (ranks,) = worlds.attempts(one_by_one, [case])
    assert [attempt.messages for attempt in ranks] == [2, 2, 2]
    assert [attempt.payload for attempt in ranks] == [40, 40, 40]


@pytest.mark.parametrize("group", ["with a group", "without a group"])
def test_the_reader_finds_the_group_again(notebook, group):
    notebook.px("import torch.distributed as dist\nif dist.is_initialized(): dist.destroy_process_group()")
    if group == "with a group":
        assert notebook.px("dist.init_process_group()").error is None
    assert worlds.attempts(summed, list(worlds.awkward(sizes=[2]))) is not None
    shown = notebook.px("print(dist.get_world_size() if dist.is_initialized() else None)")
    assert shown.text == ("ranks 0–3   4" if group == "with a group" else "ranks 0–3   None")


def test_a_group_that_cannot_be_made_again_is_told(notebook, monkeypatch):
    notebook.px("import torch.distributed as dist\nif not dist.is_initialized(): dist.init_process_group()")
    monkeypatch.setattr(worlds.smaller, "rejoin", refused)
    said = []
    monkeypatch.setattr(worlds, "say_afterwards", said.append)
    assert worlds.attempts(summed, list(worlds.awkward(sizes=[2]))) is not None
    assert said == ['Your process group could not be made again: call dist.init_process_group("gloo").']
    assert notebook.px('dist.init_process_group("gloo")').error is None


def told(answer, size):
    with pytest.raises(NotYet) as raised:
        worlds.attempts(answer, list(worlds.awkward(sizes=[size])))
    return str(raised.value)


@pytest.fixture
def second(monkeypatch):
    """A second, in which an answer has to come back."""
    monkeypatch.setattr(grading, "DEADLINE", 1.0)


def test_an_answer_that_waits_is_told_and_the_group_is_there_again(notebook, second):
    notebook.px("import torch.distributed as dist\nif not dist.is_initialized(): dist.init_process_group()")
    assert told(globals()["stuck"], 3).startswith("With 3 ranks: After 1 s: ranks 0–2 wait for each other: ")
    assert notebook.px("print(dist.get_world_size())").text == "ranks 0–3   4"


def test_a_rank_that_does_not_call_is_told(notebook, second):
    assert told(globals()["absent"], 3) == (
        "With 3 ranks: After 1 s: ranks 1, 2 wait in all_reduce for rank 0, which did something else."
    )


def test_an_answer_that_raises_is_told(notebook):
    assert told(raising, 2).startswith("With 2 ranks: ranks 0, 1 raised IndexError")


@pytest.mark.parametrize(
    ("got", "said"),
    [
        (None, "the answer is nothing (None), a tensor is expected."),
        (3, "the answer is a int, a tensor is expected."),
        (torch.zeros(2), "the shape is [2], expected [3]."),
        (torch.zeros(3, dtype=torch.int64), "the dtype is int64, expected float32."),
        (torch.tensor([1.0, 2.0, 4.0]), "element 2 is 4, one process gets 3."),
        (torch.zeros(3), "element 0 is 0, one process gets 1. That is the rank's own tensor, unchanged."),
        (torch.tensor([1.0, 2.0, 3.0]), ""),
    ],
)
def test_a_difference_is_told_with_its_element(got, said):
    assert worlds.difference(got, torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3)) == said


def test_a_rank_whose_last_group_failed_half_way_meets_the_others(notebook):
    # What is left where another rank has left again while this one still made the group.
    half = "if dist.is_initialized():\n    dist.destroy_process_group()\ndist.distributed_c10d._world.group_count = 1"
    assert notebook.px(half, "--ranks 1").error is None
    tried = worlds.attempts(summed, list(worlds.awkward(sizes=(2,))))
    assert len(tried) == len(list(worlds.awkward(sizes=(2,))))


def test_a_rank_that_fails_at_once_waits_until_the_others_have_made_the_group(notebook, monkeypatch):
    slow = (
        "import time\nmake = dist.init_process_group\n"
        "def late(*arguments, **options):\n    make(*arguments, **options)\n    time.sleep(0.5)\n"
        "dist.init_process_group = late"
    )
    assert notebook.px(slow, "--ranks 1").error is None
    try:
        with pytest.raises(NotYet, match="ranks 0, 1 raised IndexError"):
            worlds.attempts(raising, list(worlds.awkward(sizes=(2,))))
    finally:
        assert notebook.px("dist.init_process_group = make", "--ranks 1").error is None
