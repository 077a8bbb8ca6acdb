"""The graders of the chapter *mingpt*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed

from ranklab import check
from ranklab.check.capstone import mingpt

PLACE = """
epoch = taken = 0
for steps, batch in history:
    for _ in range(steps):
        if taken + batch > rows:
            epoch, taken = epoch + 1, 0
        taken += batch
return epoch, taken
"""
NEWEST = """
import torch.distributed as dist
done = [None] * dist.get_world_size()
dist.all_gather_object(done, -1 if found is None else found["done"])
box = [found]
dist.broadcast_object_list(box, src=done.index(max(done)))
return box[0]
"""
ATTEND = """
import math
import torch
scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(key.shape[2] - query.shape[2])
return scores.masked_fill(~seen, -math.inf).softmax(-1) @ value
"""


def placed(capsys, body):
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return asked(capsys, check.place, f"def answer(history, rows):\n{lines}")


def attended(capsys, body):
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return asked(capsys, check.attend, f"def answer(query, key, value):\n{lines}")


def asked(capsys, grader, source):
    """What a grader that needs no ranks says."""
    names = {}
    exec(source, names)
    grader(names["answer"])
    return capsys.readouterr().out.strip()


@pytest.fixture
def chosen(graded):
    return partial(graded, check.newest, "found")


def test_counting_step_by_step_is_right(capsys):
    assert placed(capsys, PLACE) == "Correct: 7 jobs go on where they stopped."


def test_an_epoch_that_is_used_up_is_the_next_one(capsys):
    body = changed(PLACE, "return epoch, taken", "return (epoch + 1, 0) if taken == rows else (epoch, taken)")
    assert placed(capsys, body).startswith("Correct")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "return divmod(sum(steps * batch for steps, batch in history), rows)",
            "[(7, 4)], 22 rows: you say (1, 6), the job is at (1, 8). Rows that are left at the end of an epoch",
        ),
        (
            "return 0, sum(steps * batch for steps, batch in history)",
            "The next epoch begins when too few rows are left",
        ),
        (
            "batch = history[-1][1]\nepoch, steps = divmod(sum(s for s, _ in history), rows // batch)\n"
            "return epoch, steps * batch",
            "The steps of each part count with the batch of that part.",
        ),
        (
            "batch = history[0][1]\nreturn divmod(sum(s for s, _ in history), rows // batch)",
            "The second number counts rows, not steps.",
        ),
        (changed(PLACE, "return epoch, taken", "return taken"), "a pair of whole numbers is expected"),
        (changed(PLACE, "> rows", ">= rows"), "With history [(5, 4)], 20 rows"),
        ("return history.nothing", "your answer raised AttributeError"),
    ],
)
def test_a_wrong_place_is_told_why(capsys, body, sentence):
    told = placed(capsys, body)
    assert told.startswith("Not yet. With history")
    assert sentence in told


def test_the_rank_with_the_most_steps_sends(chosen):
    assert chosen(NEWEST) == ("Correct: 11 restarts on 2, 3 and 4 ranks, and all ranks go on from the newest snapshot.")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "import torch.distributed as dist\nbox = [found]\ndist.broadcast_object_list(box, src=0)\nreturn box[0]",
            "rank 0 found nothing, rank 1 found step 50: rank 0: it goes on from nothing, the newest is step 50. "
            "That is what rank 0 found.",
        ),
        ("return found", "rank 1: it goes on from nothing, the newest is step 50. That is what the rank itself found."),
        (changed(NEWEST, "max(done)", "min(done)"), "rank 0: it goes on from nothing, the newest is step 50."),
        (changed(NEWEST, "return box[0]", "return done"), "your function returned list, not a snapshot."),
        (
            changed(NEWEST, "found is None else", "not found else").replace('found["done"]', 'found["steps"]'),
            "KeyError",
        ),
        (
            "if found is None:\n    return None\n" + NEWEST.strip(),
            "Every rank has to make the same calls, whatever it found.",
        ),
        (changed(NEWEST, "return box[0]", "return box[0] and {'done': box[0]['done'], 'model': 0}"), "another one"),
    ],
)
def test_a_wrong_snapshot_is_told_why(chosen, body, sentence):
    told = chosen(body)
    assert told.startswith("Not yet. With 2 ranks")
    assert sentence in told


def test_a_mask_that_ends_with_the_keys_is_right(capsys):
    assert attended(capsys, ATTEND) == "Correct: 4 of 4 lengths, one query for many keys among them."


TORCHS = "import torch.nn.functional as F\nreturn F.scaled_dot_product_attention(query, key, value, is_causal=True)"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (TORCHS, "With 1 query and 6 keys: element 0 is"),
        (TORCHS, "Query 0 sees only key 0: the two sequences have to end together."),
        (TORCHS.replace(", is_causal=True", ""), "Every query sees all keys: there is no mask."),
        (changed(ATTEND, " - query.shape[2])", " - query.shape[2] - 1)"), "A character sees itself, too."),
        (changed(ATTEND, " - query.shape[2])", " - query.shape[2] + 1)"), "the one after it, which it is to predict."),
        (changed(ATTEND, " / math.sqrt(query.shape[-1])", ""), "Divide the scores by the root of the width."),
        (
            changed(ATTEND, "scores.masked_fill(~seen, -math.inf).softmax(-1)", "(scores.softmax(-1) * seen)"),
            "Mask before softmax: afterwards the chances of a row no longer add up to 1.",
        ),
        (changed(ATTEND, "return scores", "result = scores"), "the answer is nothing (None), a tensor is expected."),
    ],
)
def test_a_wrong_attention_is_told_why(capsys, body, sentence):
    told = attended(capsys, body)
    assert told.startswith("Not yet. With ")
    assert sentence in told


def test_the_cases_hold_what_makes_answers_differ():
    assert any(mingpt._placed(history, rows)[1] == rows for history, rows in mingpt.HISTORIES)
    for size in (2, 3, 4):
        assert any(found[0] is None and any(found) for found in mingpt.FOUND[size])
    assert any(queries < keys for queries, keys in mingpt.LENGTHS)
