"""The graders of the chapter *silently-wrong*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed

from ranklab import check
from ranklab.check.breaking import silently_wrong

ROWS = """
import torch
counts = torch.bincount(rows, minlength=length)
dist.all_reduce(counts)
twice, never = (counts > 1).nonzero().flatten(), (counts == 0).nonzero().flatten()
return twice.tolist(), never.tolist()
"""
NAME = """
differ = lambda key: any(of_rank[key] != ranks[0][key] for of_rank in ranks)
if not differ("rows"):
    return "same rows"
if differ("before"):
    return "different start"
if differ("used"):
    return "no average"
if differ("after"):
    return "different rates"
used, total = ranks[0]["used"][0], sum(of_rank["own"][0] for of_rank in ranks)
return "a sum" if abs(used - total) < abs(used - total / len(ranks)) else "nothing"
"""


@pytest.fixture
def audited(graded):
    return partial(graded, check.audit_rows, "rows, length")


@pytest.fixture
def named(graded):
    return partial(graded, check.name_fault, "ranks")


def test_counts_that_add_up_are_par(audited):
    assert audited(ROWS) == "Correct: 6 jobs on 2, 3 and 4 ranks. You made 1 call, par is 1."


def test_lists_of_all_ranks_are_right_and_stand_beside_par(audited):
    body = """
from collections import Counter
found = [None] * dist.get_world_size()
dist.all_gather_object(found, rows.tolist())
counts = Counter(row for of_rank in found for row in of_rank)
return [r for r in range(length) if counts[r] > 1], [r for r in range(length) if counts[r] == 0]
"""
    told = audited(body)
    assert told.startswith("Correct") and "par is 1." in told


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "dist.all_reduce(counts)",
            "",
            "With 2 ranks and the rows [0, 1, 2] and [2, 3] of 6: rank 0: your lists are [] and [3, 4, 5], "
            "expected [2] and [4, 5]. These are the rows of this rank alone",
        ),
        (
            "twice.tolist(), never",
            "never.tolist(), twice",
            "Give first the rows read more than once, then those never read.",
        ),
        (
            "dist.all_reduce(counts)",
            "dist.all_reduce(counts, dist.ReduceOp.MAX)",
            "A row that two ranks have read once each was read twice, too: add up the counts.",
        ),
        (
            "dist.all_reduce(counts)",
            "counts = counts.clamp(max=1)\ndist.all_reduce(counts)",
            "A row that one rank has read twice counts, too.",
        ),
        (
            "dist.all_reduce(counts)",
            "own = counts.clone()\ndist.all_reduce(counts)",
            "The first list is right. The second is of this rank alone.",
        ),
        ("return ", "result = ", "the answer is nothing (None), two lists are expected."),
        ("twice.tolist(), never.tolist()", "twice.tolist()", "the answer is [2], two lists are expected."),
        ("dist.all_reduce(counts)", "if len(rows): dist.all_reduce(counts)", "waits in all_reduce for rank 1"),
    ],
)
def test_a_wrong_audit_is_told_why(audited, old, new, sentence):
    body = changed(ROWS, old, new)
    if "own = " in new:
        body = changed(body, "(counts == 0)", "(own == 0)")
    told = audited(body)
    assert told.startswith("Not yet. With 2 ranks")
    assert sentence in told


def test_a_diagnosis_in_the_order_of_the_step_is_right(named):
    assert named(NAME) == "Correct: 18 of 18 steps, 5 faults and none."


@pytest.mark.parametrize(
    ("old", "new", "sentences"),
    [
        (
            'if differ("before"):',
            "if False:",
            ["it is 'different start': the weights differ before the step", "a symptom of three faults"],
        ),
        (
            'return "different rates"',
            'return "no average"',
            ["you say 'no average', and it is 'different rates'", "but the average arrived"],
        ),
        ('if not differ("rows"):', "if False:", ["and it is 'same rows': all ranks have read", "the rows are not."]),
        ('return "a sum" if', 'return "nothing" if', ["and it is 'a sum'", "All ranks agree, and still all are wrong"]),
        (
            "abs(used - total) < abs(used - total / len(ranks))",
            "used != total / len(ranks) + 1e-9",
            ["you say 'a sum', and it is 'nothing'", "A mean of floats is rounded"],
        ),
        ('return "no average"', 'return "no mean"', ["your answer is 'no mean', it should be one of 'nothing', "]),
        ('ranks[0]["used"][0]', 'ranks[0]["gradient"][0]', ["your answer raised KeyError"]),
    ],
)
def test_a_wrong_diagnosis_is_told_why(named, old, new, sentences):
    told = named(changed(NAME, old, new))
    assert told.startswith("Not yet. Step ")
    for sentence in sentences:
        assert sentence in told


def test_the_jobs_have_ranks_without_rows_repeats_within_a_rank_and_rows_that_nobody_reads():
    for size, jobs in silently_wrong.READ.items():
        assert all(len(read) == size for *read, _ in jobs)
        assert any([] in read for *read, _ in jobs)
        assert any(len(set(rows)) < len(rows) for *read, _ in jobs for rows in read)
        for *read, length in jobs:
            twice, never = silently_wrong._audit([row for rows in read for row in rows], length)
            assert twice and never
