"""Graders of the chapter *collectives*: the right answer, and the usual wrong ones, each told what is wrong with it."""

import pytest

import ranklab

GATHER, TRANSPOSE = ranklab.check.gather_uneven, ranklab.check.transpose

ANSWERS = """
def gathered(tensor):
    rank, size = dist.get_rank(), dist.get_world_size()
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(lengths, torch.tensor([tensor.numel()]))
    parts = [tensor.new_empty(int(length)) for length in lengths]
    parts[rank] = tensor.contiguous()
    others = [other for other in range(size) if other != rank]
    sent = [dist.isend(parts[rank], other) for other in others]
    for other in others:
        dist.recv(parts[other], other)
    for work in sent:
        work.wait()
    return parts


def join(tensor):
    return torch.cat(gathered(tensor))


def backwards(tensor):
    return torch.cat(gathered(tensor)[::-1])


def own_missing(tensor):
    parts = gathered(tensor)
    return torch.cat(parts[: dist.get_rank()] + parts[dist.get_rank() + 1 :])


def alone(tensor):
    gathered(tensor)
    return tensor


def padded(tensor):
    parts = gathered(tensor)
    longest = max(part.numel() for part in parts)
    return torch.cat([torch.nn.functional.pad(part, (0, longest - part.numel())) for part in parts])


def in_floats(tensor):
    whole = join(tensor)
    return torch.empty(whole.shape).copy_(whole)


def summed(tensor):
    parts = gathered(tensor)
    longest = max(part.numel() for part in parts)
    return sum(torch.nn.functional.pad(part, (0, longest - part.numel())) for part in parts)


def rank_zero(tensor):
    parts = gathered(tensor)
    return torch.cat(parts) if dist.get_rank() == 0 else None


def pickled(tensor):
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, tensor)
    return torch.cat(parts)


def waiting(tensor):
    dist.recv(tensor.clone(), (dist.get_rank() + 1) % dist.get_world_size())


def turned(rows):
    size = dist.get_world_size()
    mine = [block.T.contiguous() for block in rows.chunk(size, 1)]
    received = torch.empty_like(torch.stack(mine))
    dist.all_to_all_single(received, torch.stack(mine))
    return torch.cat(list(received), 1)


def turned_in_floats(rows):
    whole = turned(rows)
    return torch.empty(whole.shape).copy_(whole)


def gather_all(rows):
    size = dist.get_world_size()
    everything = [torch.empty(rows.shape, dtype=rows.dtype) for _ in range(size)]
    dist.all_gather(everything, rows.contiguous())
    return torch.cat(everything).T


def everything(rows):
    return gather_all(rows).chunk(dist.get_world_size())[dist.get_rank()]


def not_turned(rows):
    mine = torch.stack(rows.chunk(dist.get_world_size(), 1))
    received = torch.empty_like(mine)
    dist.all_to_all_single(received, mine)
    return torch.cat(list(received), 1)


def own_rows(rows):
    return rows.T


def reversed_blocks(rows):
    return torch.cat(turned(rows).chunk(dist.get_world_size(), 1)[::-1], 1)


def first_only(rows):
    result = turned(rows)
    return result if dist.get_rank() == 0 else None


def kept(rows):
    return rows
"""
exec(compile(ANSWERS, "ipykernel_1/2.py", "exec"))  # as a notebook compiles a cell
MADE = [value for value in list(globals().values()) if getattr(value, "__code__", None) and value.__name__ != "imports"]
for function in MADE:
    if function.__code__.co_filename == "ipykernel_1/2.py":
        function.__module__ = "__main__"  # travels by value: a rank cannot import this file


@pytest.fixture(autouse=True)
def imports(notebook):
    """The ranks know what a chapter's cells have imported and defined."""
    assert notebook.px("import torch\nimport torch.distributed as dist\n" + ANSWERS).error is None


def told(capsys, grader, answer):
    grader(globals()[answer])
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    return said


def test_a_right_gather_is_told_its_score(capsys):
    said = told(capsys, GATHER, "join")
    assert said == (
        "Correct: 24 cases on up to 4 ranks. The busiest rank sent 3 messages and 12000 bytes in the largest; "
        "par is 3 and 12000.\n"
    )


@pytest.mark.parametrize(
    ("grader", "answer", "sentence"),
    [
        (GATHER, "backwards", "all parts are there, in the order of ranks 1, 0."),
        (GATHER, "own_missing", "its own part is missing."),
        (GATHER, "alone", "it returns its own tensor alone."),
        (GATHER, "padded", "the padding is still in it: cut every part to its length."),
        (GATHER, "summed", "the parts are added up; they should stand one after the other."),
        (GATHER, "in_floats", "elements of int64: rank 0: the dtype is float32, expected int64."),
        (GATHER, "rank_zero", "only rank 0 returns it; every rank has to."),
        (GATHER, "waiting", "ranks 0, 1 wait for each other"),
        (TRANSPOSE, "own_rows", "it transposes its own rows only; the other ranks have the rest of its columns."),
        (TRANSPOSE, "gather_all", "it returns all 2 rows of the transposed matrix; its own are 1."),
        (TRANSPOSE, "not_turned", "the blocks have arrived; each still has to be transposed."),
        (TRANSPOSE, "reversed_blocks", "all blocks are there, in the order of ranks 1, 0."),
        (TRANSPOSE, "turned_in_floats", "rank 0: the dtype is float32, expected int64."),
        (TRANSPOSE, "first_only", "only rank 0 returns it; every rank has to."),
        (TRANSPOSE, "kept", "That is the rank's own tensor, unchanged."),
    ],
)
def test_a_wrong_answer_is_told_what_is_wrong(capsys, grader, answer, sentence):
    said = told(capsys, grader, answer)
    assert said.startswith("Not yet. With 2 ranks") and sentence in said


def test_a_gather_without_messages_is_told_what_the_exercise_is_about(capsys):
    said = told(capsys, GATHER, "pickled")
    assert said.startswith("Not yet. With 4 ranks and 1000, 999, 998, 997 elements of float32: the numbers are right")


@pytest.mark.parametrize(("answer", "times"), [("turned", "1.0"), ("everything", "4.0")])
def test_a_right_transposition_is_told_what_it_put_on_the_wire(capsys, answer, times):
    said = told(capsys, TRANSPOSE, answer)
    assert said == (
        f"Correct: 24 matrices on up to 4 ranks. The busiest rank put {times} times the par of 300000 bytes "
        "on the wire.\n"
    )
