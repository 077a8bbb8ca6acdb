"""The graders of the chapter *hangs*: right answers and classic mistakes, each told in its own sentence."""

import pickle
from functools import partial

import pytest
from support import changed

from ranklab import check
from ranklab.check.breaking import hangs

TOTALS = """
sums = []
while True:
    both = torch.zeros(2)
    if len(sums) < len(batches):
        both[0], both[1] = batches[len(sums)].sum(), 1
    dist.all_reduce(both)
    if both[1] == 0:
        return sums
    sums.append(both[0].item())
"""
SUSPECTS = """
for name, ranks in groups.items():
    calls = {rank: {} for rank in ranks}
    for rank in ranks:
        for entry in traces[rank]:
            what = entry["profiling_name"], entry["input_sizes"]
            if entry["process_group"][0] == name and not entry["is_p2p"]:
                calls[rank][entry["collective_seq_id"]] = what
    first = max(min(calls[rank], default=1) for rank in ranks)
    last = max(max(calls[rank], default=0) for rank in ranks)
    for number in range(first, last + 1):
        made = [calls[rank].get(number) for rank in ranks]
        usual = max(made, key=made.count)
        missing = [r for r, what in zip(ranks, made) if what is None]
        odd = [r for r, what in zip(ranks, made) if what != usual]
        if missing or odd:
            return name, number, missing or odd
"""


@pytest.fixture
def summed(graded):
    return partial(graded, check.totals, "batches")


@pytest.fixture
def read(capsys):
    def say(body):
        from support import answer

        check.suspects(answer("traces, groups", body))
        return capsys.readouterr().out.strip()

    return say


def test_a_loop_that_ends_together_is_right(summed):
    assert summed(TOTALS) == (
        "Correct: 10 sets of loaders on 2, 3 and 4 ranks, every batch summed once. "
        "For 5 steps you made 6 calls, par is 6."
    )


def test_an_agreed_number_of_steps_is_right_too(summed):
    body = """
most = torch.tensor(len(batches))
dist.all_reduce(most, dist.ReduceOp.MAX)
sums = []
for step in range(most):
    total = batches[step].sum() if step < len(batches) else torch.tensor(0.0)
    dist.all_reduce(total)
    sums.append(total.item())
return sums
"""
    assert "you made 6 calls, par is 6" in summed(body)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "sums = []\nfor batch in batches:\n    total = batch.sum()\n    dist.all_reduce(total)\n"
            "    sums.append(total.item())\nreturn sums",
            "rank 1 waits in all_reduce for rank 0",
        ),
        (
            "sums = []\nfor batch in batches:\n    total = batch.sum()\n    dist.all_reduce(total)\n"
            "    sums.append(total.item())\nreturn sums",
            hangs.STUCK,
        ),
        (
            "least = torch.tensor(len(batches))\ndist.all_reduce(least, dist.ReduceOp.MIN)\nsums = []\n"
            "for batch in batches[:least]:\n    total = batch.sum()\n    dist.all_reduce(total)\n"
            "    sums.append(total.item())\nreturn sums",
            "With 2 ranks and 3 and 4 batches: rank 0: the sums are [33.0, 44.0, 55.0], one process gets "
            "[33.0, 44.0, 55.0, 60.0]. The sums end with the shortest loader, after 3 of 4 steps.",
        ),
        (
            changed(
                changed(TOTALS, "    if both[1] == 0:\n        return sums\n", ""),
                "(both[0].item())",
                "(both[0].item())\n    if both[1] == 0:\n        return sums",
            ),
            "The last step had no batch on any rank",
        ),
        ("return [batch.sum().item() for batch in batches]", "These are the sums of its own batches."),
        (
            "most = torch.tensor(len(batches))\ndist.all_reduce(most, dist.ReduceOp.MAX)\nsums = []\n"
            "for step in range(most):\n    total = torch.tensor(0.0)\n    if batches:\n"
            "        total = batches[min(step, len(batches) - 1)].sum()\n    dist.all_reduce(total)\n"
            "    sums.append(total.item())\nreturn sums",
            "A batch is summed more than once.",
        ),
        (changed(TOTALS, "return sums", "return"), "the answer is nothing (None), a list is expected."),
        (changed(TOTALS, "return sums", "return ['a']"), "a number is expected for each step."),
    ],
)
def test_a_wrong_loop_is_told_why(summed, body, sentence):
    told = summed(body)
    assert told.startswith("Not yet. With 2 ranks")
    assert sentence in told


def test_a_reader_of_recorders_is_right(read):
    assert read(SUSPECTS) == "Correct: 7 jobs, and in each the call and the ranks that you name are the right ones."


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "n = [len(trace) for trace in traces]\n"
            "return '0', min(n) + 1, [rank for rank in range(len(n)) if n[rank] == min(n)]",
            "With one rank of three in another operation: you name call 6, it is 5. There is an earlier one",
        ),
        (
            changed(
                SUSPECTS, 'calls[rank][entry["collective_seq_id"]] = what', "calls[rank][len(calls[rank]) + 1] = what"
            ),
            "have forgotten their oldest entries: your answer is None",
        ),
        (changed(SUSPECTS, "range(first, last + 1)", "range(1, last + 1)"), "Some rank has forgotten that one."),
        (
            changed(SUSPECTS, 'entry["profiling_name"], entry["input_sizes"]', '"a call"'),
            "another operation: your answer is None",
        ),
        (
            changed(SUSPECTS, ', entry["input_sizes"]', ', "?"'),
            "another shape on one rank of three: your answer is None",
        ),
        (
            changed(
                SUSPECTS,
                "r for r, what in zip(ranks, made) if what is None",
                "r for r, what in zip(ranks, made) if what and None in made",
            ),
            "You named the ranks that wait",
        ),
        (
            "groups = {name: list(range(len(traces))) for name in groups}\n" + SUSPECTS.strip("\n"),
            "With a group of two among four ranks: you name call 1, it is 2.",
        ),
        (
            changed(SUSPECTS, "name, number, ", "name, number - 1, "),
            "you name call 3, it is 4. All ranks made that one",
        ),
        (
            changed(SUSPECTS, "return name, number, missing or odd", "return missing or odd"),
            "a group, a number and a list",
        ),
        (changed(SUSPECTS, "missing or odd\n", "(missing or odd)[0]\n"), "your ranks are 2, a list is expected."),
        (changed(SUSPECTS, "return name, ", "return 'all', "), "you name group 'all', it is '0'"),
        ("return traces.nothing", "your answer raised AttributeError"),
    ],
)
def test_a_wrong_reader_is_told_why(read, body, sentence):
    told = read(body)
    assert told.startswith("Not yet. With ")
    assert sentence in told


def test_the_entries_are_those_of_torch(tmp_path):
    """The fields that the jobs have are in a real recorder, with values of the same types."""
    import torch
    import torch.distributed as dist

    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        dist.all_reduce(torch.ones(4))
        dump = torch._C._distributed_c10d._dump_fr_trace(includeStackTraces=False)
    finally:
        dist.destroy_process_group()
    noted = pickle.loads(dump)["entries"][-1]
    ours = hangs.entry(noted["collective_seq_id"])
    assert {field: noted[field] for field in ours} == ours
