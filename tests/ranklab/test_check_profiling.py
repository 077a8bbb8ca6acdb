"""The graders of the chapter *profiling*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial
from itertools import product

import pytest
from support import answer, changed

from ranklab import check
from ranklab.check.capstone import profiling

EXPOSED = """
edges = sorted({edge for span in [*sums, *work] for edge in span})
total = 0
for left, right in zip(edges, edges[1:]):
    middle = (left + right) / 2
    sending = any(begin < middle < end for begin, end in sums)
    busy = any(begin < middle < end for begin, end in work)
    if sending and not busy:
        total += right - left
return total
"""
DIAGNOSE = """
from statistics import mean, median
for name, fault in ("load", "loader"), ("forward", "slow rank"):
    times = {}
    for rank, event, begin, end in rows:
        if event == name:
            times.setdefault(rank, []).append(end - begin)
    middles = {rank: median(each) for rank, each in times.items()}
    if max(middles.values()) > 2 * min(middles.values()):
        return fault, max(middles, key=middles.get)
calls = sum(r == 0 and n == "c10d::allreduce_" for r, n, _, _ in rows)
steps = sum(r == 0 and n == "backward" for r, n, _, _ in rows)
return ("bucket" if calls == steps else "none"), None
"""


@pytest.fixture
def said(capsys):
    """What a grader says; these two call the answer in the notebook, so no rank is started."""

    def say(grader, arguments, body):
        grader(answer(arguments, body))
        return capsys.readouterr().out.strip()

    return say


@pytest.fixture
def exposed(said):
    return partial(said, check.exposed_time, "sums, work")


@pytest.fixture
def diagnosed(said):
    return partial(said, check.diagnose, "rows")


def test_pieces_between_edges_are_right(exposed):
    assert exposed(EXPOSED) == "Correct: 8 of 8 cases."


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "total = sum(e - b for b, e in sums)\n"
            "for b, e in sums:\n"
            "    for left, right in work:\n"
            "        total -= max(0, min(e, right) - max(b, left))\n"
            "return total",
            "With work that overlaps work: your answer is 2, and 4 would be right. Where two spans of a list overlap",
        ),
        ("return sum(e - b for b, e in sums)", "With a sum that work hides wholly: your answer is 10, and 0 would"),
        (
            "return max(0, sum(e - b for b, e in sums) - sum(e - b for b, e in work))",
            "subtract only where both run.",
        ),
        (changed(EXPOSED, "sending and not busy", "sending and busy"), "That is the time which work hides."),
        (changed(EXPOSED, "sending and not busy", "not busy"), "your answer is 20, and 10 would be right."),
        (changed(EXPOSED, "return ", "result = "), "your answer is None, it should be a number."),
        (changed(EXPOSED, "sums", "summs"), "your answer raised NameError"),
    ],
)
def test_a_wrong_exposed_time_is_told_why(exposed, body, sentence):
    told = exposed(body)
    assert told.startswith("Not yet. With ")
    assert sentence in told


def test_medians_and_calls_find_every_fault(diagnosed):
    assert diagnosed(DIAGNOSE) == "Correct: 24 of 24 runs, on 2, 3 and 4 ranks."


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "sums = {}\n"
            "for rank, name, b, e in rows:\n"
            "    if name == 'gloo:all_reduce':\n"
            "        sums[rank] = sums.get(rank, 0) + e - b\n"
            "return 'slow rank', max(sums, key=sums.get)",
            "Rank 0 has longer sums because it waits for rank 1.",
        ),
        (changed(DIAGNOSE, "median(each)", "mean(each)"), "was late in one step of 5 only: a mean sees that"),
        (changed(DIAGNOSE, '"forward", "slow rank"', '"backward", "slow rank"'), "Compare the ranks in forward"),
        (changed(DIAGNOSE, '("load", "loader"), (', '("load", "none"), ('), "Compare the ranks in load"),
        (changed(DIAGNOSE, '"bucket" if', '"none" if'), "Every call comes after the last gradient of its step."),
        (changed(DIAGNOSE, "calls == steps", "calls"), "Three calls of each step come before its last gradient."),
        (changed(DIAGNOSE, "return fault, max(middles, key=middles.get)", "return fault, None"), "Say which rank: "),
        (changed(DIAGNOSE, "key=middles.get)", "key=middles.get) + 4"), "There is no rank 5."),
        (changed(DIAGNOSE, "steps else", "steps else 'healthy' or"), "Return a pair: one of the four names"),
        ("return 'none'", "your answer is 'none', planted is"),
        (changed(DIAGNOSE, "in rows", "in row"), "your answer raised NameError"),
    ],
)
def test_a_wrong_diagnosis_is_told_why(diagnosed, body, sentence):
    told = diagnosed(body)
    assert told.startswith("Not yet. Run ")
    assert sentence in told


def test_every_fault_is_planted_on_every_number_of_ranks():
    for size, fault in product(profiling.SIZES, profiling.FAULTS):
        _, planted, _ = profiling._recording(size, fault, 0)
        assert planted[0] == fault
        assert (planted[1] is None) == (fault in ("none", "bucket"))


def test_the_longest_sums_are_those_of_a_rank_that_waits():
    rows, (_, ill), _ = profiling._recording(4, "slow rank", 0)
    times = dict.fromkeys(range(4), 0.0)
    for rank, name, begin, end in rows:
        times[rank] += (end - begin) * (name == "gloo:all_reduce")
    assert min(times, key=times.get) == ill
