"""The graders of the chapter *all-reduce*: right answers, and the classic mistakes, each told in its own sentence."""

import inspect

import pytest
import torch
import torch.distributed as dist

import ranklab


def ring_right(tensor):
    rank, size = dist.get_rank(), dist.get_world_size()
    total = tensor.clone()
    chunks = total.tensor_split(size)
    for step in range(2 * (size - 1)):
        out, coming = (rank - step) % size, (rank - step - 1) % size
        inbox = torch.empty_like(chunks[coming])
        sent = dist.isend(chunks[out], (rank + 1) % size)
        dist.recv(inbox, (rank - 1) % size)
        sent.wait()
        if step < size - 1:
            inbox += chunks[coming]
        chunks[coming].copy_(inbox)
    return total


def ring_whole(tensor):
    rank, size = dist.get_rank(), dist.get_world_size()
    total, passing, inbox = tensor.clone(), tensor.clone(), tensor.clone()
    for _ in range(size - 1):
        sent = dist.isend(passing, (rank + 1) % size)
        dist.recv(inbox, (rank - 1) % size)
        sent.wait()
        total += inbox
        passing, inbox = inbox, passing
    return total


def chain(tensor):
    """Up to rank 0 and down again: few messages and bytes in all, and the ranks in the middle carry most."""
    rank, size = dist.get_rank(), dist.get_world_size()
    total, inbox = tensor.clone(), tensor.clone()
    if rank < size - 1:
        dist.recv(inbox, rank + 1)
        total += inbox
    if rank > 0:
        dist.send(total, rank - 1)
        dist.recv(total, rank - 1)
    if rank < size - 1:
        dist.send(total, rank + 1)
    return total


def everyone(tensor):
    rank, size = dist.get_rank(), dist.get_world_size()
    mine, total, inbox = tensor.clone(), tensor.clone(), tensor.clone()
    others = [other for other in range(size) if other != rank]
    sent = [dist.isend(mine, other) for other in others]
    for other in others:
        dist.recv(inbox, other)
        total += inbox
    for message in sent:
        message.wait()
    return total


def doubling(tensor):
    rank, size = dist.get_rank(), dist.get_world_size()
    total, inbox = tensor.clone(), tensor.clone()
    span = 1
    while span < size:
        sent = dist.isend(total, rank ^ span)
        dist.recv(inbox, rank ^ span)
        sent.wait()
        total, span = total + inbox, 2 * span
    return total


def collective(tensor):
    total = tensor.clone()
    dist.all_reduce(total)
    return total


def nothing(tensor):
    tensor.clone()


SOURCE = inspect.getsource(ring_right)


def changed(name, old, new, source=SOURCE):
    """The ring with one line changed, compiled as a notebook compiles a cell."""
    assert old in source, old
    text = source.replace(old, new).replace("def ring_right", f"def {name}").replace("def doubling", f"def {name}")
    names = {"torch": torch, "dist": dist, "__name__": "__main__"}
    exec(compile(text, "ipykernel_1/2.py", "exec"), names)
    return names[name]


MEAN = changed("mean", "return total", "return total / size")
REMAINDER = changed(
    "remainder", "total.tensor_split(size)", "total[: len(total) // size * size].view(size, len(total) // size)"
)
WRONG_CHUNK = changed(
    "wrong_chunk",
    "out, coming = (rank - step) % size, (rank - step - 1) % size",
    "out, coming = (rank - step % (size - 1)) % size, (rank - step % (size - 1) - 1) % size",
)
NO_SECOND_ROUND = changed("no_second_round", "range(2 * (size - 1))", "range(size - 1)")
TWO_MODULO_THREE = changed("two_modulo_three", "return total", "return total + (len(total) % 3 == 2)")
IN_PLACE = changed("in_place", "total = tensor.clone()", "total = tensor.contiguous()")
DEADLOCK = changed("deadlock", "sent = dist.isend(", "sent = dist.irecv(")
UNROUNDED = changed(
    "unrounded",
    "return total",
    "return total * (1 if rank or total.dtype != torch.float32 else 1 + 2e-7)",
    inspect.getsource(doubling),
)

OVER_PAR = (
    "With 3 ranks and 1000 elements of float32: the sum is right, but the ranks sent 24000 bytes in all, par is 16000."
)
NOT_THE_SAME_BITS = "rank 0 have the same sum but not the same bits."

for function in (ring_right, ring_whole, chain, everyone, doubling, collective, nothing):
    function.__module__ = "__main__"  # travels by value: a rank cannot import this file


@pytest.fixture(autouse=True)
def imports(notebook):
    assert notebook.px("import torch\nimport torch.distributed as dist").error is None


def verdict(grader, answer, capsys):
    capsys.readouterr()
    grader(answer)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    return lines[0]


def test_the_right_ring_is_told_its_numbers_beside_par(notebook, capsys):
    assert verdict(ranklab.check.ring_sum, ring_right, capsys) == (
        "Correct: 24 sums on 2 to 4 ranks. With 4 ranks you sent 6 messages per rank, par 6, "
        "and for 4000 bytes 24000 in all, par 24000."
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ring_whole, OVER_PAR),
        (everyone, OVER_PAR),
        (chain, "the sum is right, but rank 1 sent 8000 bytes, par is 5344: 4 chunks of at most 1336."),
        (collective, "your answer calls all_reduce; send and recv are enough."),
        (nothing, "the answer is nothing (None), a tensor is expected."),
        (MEAN, "That is the mean: 2 times as much is the sum."),
        (REMAINDER, "are wrong: the chunks lose what remains of"),
        (WRONG_CHUNK, "a chunk was copied before it was complete."),
        (NO_SECOND_ROUND, "the sums are made, but the second round does not bring them to all."),
        (TWO_MODULO_THREE, "With 2 ranks and 11 elements of int64: rank 0: element 0 is"),
        (IN_PLACE, "the sum is right, but your answer changed the tensor that it was given."),
        (DEADLOCK, "With 2 ranks: After 5 s:"),
    ],
)  # fmt: skip
def test_a_wrong_ring_is_told_its_mistake(notebook, capsys, answer, said):
    told = verdict(ranklab.check.ring_sum, answer, capsys)
    assert told.startswith("Not yet. ") and said in told, told


HELPED = """
import torch
import torch.distributed as dist

def helper(tensor):
    return tensor

def ring(tensor):
    return helper(tensor)

def misspelt(tensor):
    return hepler(tensor)

def imported(tensor):
    return library.ones(tensor)

import math as library
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "ring",
            "NameError: name 'helper' is not defined. Only the answer travels to the ranks, helper stays in the "
            "notebook: define it inside the answer, or in a %%px cell.",
        ),
        ("imported", "library stays in the notebook: import it inside the answer, or in a %%px cell."),
        ("misspelt", "ranks 0, 1 raised NameError: name 'hepler' is not defined"),
    ],
)
def test_a_helper_that_stays_in_the_notebook_is_told(notebook, capsys, name, said):
    names = {"__name__": "__main__"}
    exec(compile(HELPED, "ipykernel_1/2.py", "exec"), names)
    told = verdict(ranklab.check.ring_sum, names[name], capsys)
    assert told.startswith("Not yet. With 2 ranks: ") and said in told, told
    assert told.endswith((said, "cell."))


def test_the_right_doubling_is_told_its_messages(notebook, capsys):
    assert verdict(ranklab.check.few_messages, doubling, capsys) == (
        "Correct: 18 sums, the same on all ranks to the last bit. With 4 ranks you sent 2 messages per rank, par 2."
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (everyone, NOT_THE_SAME_BITS),
        (ring_right, "the sum is right, but rank 0 sent 2 messages, par is 1."),
        (UNROUNDED, NOT_THE_SAME_BITS),
        (collective, "your answer calls all_reduce; send and recv are enough."),
        (nothing, "the answer is nothing (None), a tensor is expected."),
    ],
    ids=["everyone", "ring", "last bit", "collective", "nothing"],
)  # fmt: skip
def test_a_wrong_doubling_is_told_its_mistake(notebook, capsys, answer, said):
    told = verdict(ranklab.check.few_messages, answer, capsys)
    assert told.startswith("Not yet. ") and said in told, told


def test_a_meter_can_be_pulled_into_the_notebook(notebook):
    notebook.px("import ranklab\nwith ranklab.meter() as meter: pass")
    assert notebook.run("print([meter.messages for meter in world.pull('meter')])").text == "[0, 0, 0, 0]"
