"""The graders of point-to-point: right answers pass, each classic mistake is told its own sentence."""

import inspect

import pytest
import torch
import torch.distributed as dist

from ranklab import check


def verdict(capsys, grader, answer):
    grader(answer)
    return capsys.readouterr().out.strip()


def exchange(tensor, box, to, source):
    works = [dist.isend(tensor, to), dist.irecv(box, source)]
    for work in works:
        work.wait()
    return box


def shift_right(tensor, by):
    rank, size = dist.get_rank(), dist.get_world_size()
    if by % size == 0:
        return tensor.clone()
    tensor = tensor.contiguous()
    return exchange(tensor, torch.empty_like(tensor), (rank + by) % size, (rank - by) % size)


def shift_wrong_way(tensor, by):
    return shift_right(tensor, -by)


def shift_nothing(tensor, by):
    return tensor


def shift_forgets_the_box(tensor, by):
    shift_right(tensor, by)


def shift_in_steps(tensor, by):
    for _ in range(by % dist.get_world_size()):
        tensor = shift_right(tensor, 1)
    return tensor.clone()


def shift_everything(tensor, by):
    size = dist.get_world_size()
    boxes = [torch.empty_like(tensor) for _ in range(size)]
    dist.all_gather(boxes, tensor.contiguous())
    return boxes[(dist.get_rank() - by) % size]


def shift_to_self(tensor, by):
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor = tensor.contiguous()
    if rank % 2:
        box = torch.empty_like(tensor)
        dist.recv(box, (rank - by) % size)
        dist.send(tensor, (rank + by) % size)
        return box
    dist.send(tensor, (rank + by) % size)
    box = torch.empty_like(tensor)
    dist.recv(box, (rank - by) % size)
    return box


def shift_in_place(tensor, by):
    return tensor.copy_(shift_right(tensor, by))


def shift_strided(tensor, by):
    rank, size = dist.get_rank(), dist.get_world_size()
    if by % size == 0:
        return tensor.clone()
    return exchange(tensor, torch.empty_like(tensor), (rank + by) % size, (rank - by) % size)


DEADLOCKS = """
def all_give_first(tensor, by):
    rank, size = dist.get_rank(), dist.get_world_size()
    box = torch.empty_like(tensor)
    dist.send(tensor, (rank + by) % size)
    dist.recv(box, (rank - by) % size)
    return box

def keeps_no_work(tensor, by):
    rank, size = dist.get_rank(), dist.get_world_size()
    box = torch.empty_like(tensor)
    dist.isend(tensor, (rank + by) % size)
    dist.barrier()
    dist.recv(box, (rank - by) % size)
    return box
"""
exec(compile(DEADLOCKS, "ipykernel_1/2.py", "exec"))  # as a notebook compiles a cell


def over_length_first(tensor):
    rank, size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    length = exchange(torch.tensor([len(tensor)]), torch.zeros(1, dtype=torch.int64), right, left)
    return exchange(tensor.contiguous(), torch.empty(length.item(), dtype=tensor.dtype), right, left)


def over_with_float_box(tensor):
    rank, size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    length = exchange(torch.tensor([len(tensor)]), torch.zeros(1, dtype=torch.int64), right, left)
    return exchange(tensor.contiguous(), torch.empty(length.item(), dtype=torch.float64), right, left)


def over_own_length(tensor):
    rank, size = dist.get_rank(), dist.get_world_size()
    return exchange(tensor, torch.empty_like(tensor), (rank + 1) % size, (rank - 1) % size)


def over_pickled(tensor):
    rank, size = dist.get_rank(), dist.get_world_size()
    got = [None]
    for giver in range(size):
        if rank == giver:
            dist.send_object_list([tensor], (rank + 1) % size)
        elif rank == (giver + 1) % size:
            dist.recv_object_list(got, giver)
    return got[0]


def over_to_the_left(tensor):
    rank, size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    length = exchange(torch.tensor([len(tensor)]), torch.zeros(1, dtype=torch.int64), left, right)
    return exchange(tensor.contiguous(), torch.empty(length.item(), dtype=tensor.dtype), left, right)


SHARED = "\n\n".join(inspect.getsource(function) for function in (exchange, shift_right))


@pytest.fixture(autouse=True)
def names(notebook):
    """What an answer uses is looked up on the rank; one that was killed comes back without it."""
    assert notebook.px(f"import torch\nimport torch.distributed as dist\n\n{SHARED}").error is None


for function in [value for value in globals().values() if callable(value) and value.__module__ == __name__]:
    function.__module__ = "__main__"  # travels by value: a rank cannot import this file
GIVES_FIRST, KEEPS_NO_WORK = globals()["all_give_first"], globals()["keeps_no_work"]
GIVES_FIRST.__module__ = KEEPS_NO_WORK.__module__ = "__main__"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            shift_right,
            "Correct: with 2, 3 and 4 ranks every tensor arrived where it should. Messages per rank: yours 1",
        ),
        (
            shift_wrong_way,
            "With 3 ranks and by=1, 1 element of float32: rank 0: element 0 is 11, one process gets 21. ",
        ),
        (shift_wrong_way, "That is the tensor of rank 1."),
        (shift_nothing, "rank 0: element 0 is 1, one process gets 11. That is the rank's own tensor, unchanged."),
        (shift_forgets_the_box, "rank 0: the answer is nothing (None), a tensor is expected."),
        (
            shift_in_steps,
            "With 3 ranks and by=-1, 12 elements of float32: right, but rank 0 sent 2 messages, par is 1.",
        ),
        (shift_everything, "the answer calls all_gather; sends and receives are enough."),
        (shift_to_self, "Invalid destination rank: destination rank should not be the same as the rank of the current"),
        (shift_in_place, "rank 0: the tensor that it was given has changed; work on a copy."),
        (shift_strided, "input tensor has to be contiguous"),
        (GIVES_FIRST, "With 2 ranks: After 5 s: ranks 0, 1 wait for each other: rank 0 sends to rank 1"),
        (KEEPS_NO_WORK, "With 2 ranks: After 5 s: ranks 0, 1 wait for each other: rank 0 receives from rank 1"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_shift(notebook, capsys, answer, sentence):
    told = verdict(capsys, check.shift, answer)
    assert sentence in told
    assert told.startswith("Correct" if answer is shift_right else "Not yet.") and "\n" not in told


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            over_length_first,
            "Correct: with 2, 3 and 4 ranks every tensor arrived, whatever its length. Messages per rank: ",
        ),
        (over_to_the_left, "With 3 ranks and 3, 0 and 5 elements of float32: rank 0: the shape is [0], expected [5]."),
        (over_with_float_box, "rank 0: the dtype is float64, expected float32."),
        (over_own_length, "rank 1 was killed by SIGABRT"),
        (over_pickled, "right, but rank 0 sent "),
        (torch.clone, "With 2 ranks and 3 and 0 elements of float32: rank 0: the shape is [3], expected [0]."),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_hand_over(notebook, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.hand_over, answer)
