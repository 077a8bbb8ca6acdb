"""The graders of the chapter *context-and-experts*: right answers and mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed

from ranklab import check
from ranklab.check.model_parallel import context_and_experts

MERGE = """
import torch
largest = lses.max(0).values
largest = torch.where(largest.isinf(), torch.zeros_like(largest), largest)
weights = (lses - largest).exp()
total = weights.sum(0)
safe = torch.where(total > 0, total, torch.ones_like(total))
out = (weights[..., None] * outs).sum(0) / safe[:, None]
return out, total.log() + largest
"""
DECODE = """
heads, width = q.shape
scores = (k @ q[..., None]).squeeze(-1) / width**0.5
lowest = scores.new_full((heads, 1), float("-inf"))
largest = torch.cat([scores, lowest], dim=1).amax(1)
dist.all_reduce(largest, dist.ReduceOp.MAX)
weights = (scores - largest[:, None]).exp()
above = (weights[..., None] * v).sum(1)
both = torch.cat([above, weights.sum(1, keepdim=True)], dim=1)
dist.all_reduce(both)
return both[:, :width] / both[:, width:]
"""
OWN = """
scores = (k @ q[..., None]).squeeze(-1) / q.shape[-1] ** 0.5
out = (scores.softmax(-1)[..., None] * v).sum(1)
"""
PLACES = """
import torch
import torch.nn.functional as F
line = chosen.T.flatten()
so_far = F.one_hot(line, experts).cumsum(0)
place = so_far.gather(1, line[:, None]).squeeze(1) - 1
place[place >= capacity] = -1
return place.view(chosen.shape[1], chosen.shape[0]).T
"""


@pytest.fixture
def merged(graded):
    return partial(graded, check.merge_parts, "outs, lses")


@pytest.fixture
def decoded(graded):
    return partial(graded, check.decode, "q, k, v")


@pytest.fixture
def queued(graded):
    return partial(graded, check.places_of, "chosen, experts, capacity")


def test_a_merge_by_sums_is_right(merged):
    assert merged(MERGE) == "Correct: 7 of 7 cases, large scores and queries without a key among them."


def test_a_merge_two_by_two_is_right(merged):
    body = """
import torch
out, lse = outs[0], lses[0]
for new, lse2 in zip(outs[1:], lses[1:]):
    total = torch.logaddexp(lse, lse2)
    share = torch.nan_to_num((lse - total).exp())[:, None]
    share2 = torch.nan_to_num((lse2 - total).exp())[:, None]
    out, lse = share * out + share2 * new, total
return out, lse
"""
    assert merged(body).startswith("Correct")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return outs.mean(0), lses.logsumexp(0)", "2 parts: the output is wrong: element 0 is"),
        ("return outs.mean(0), lses.logsumexp(0)", "That is the mean of the parts"),
        ("return outs.sum(0), lses.logsumexp(0)", "their shares add up to 1"),
        (
            "return (lses.exp()[..., None] * outs).sum(0), lses.logsumexp(0)",
            "Divide by the sum of the weights.",
        ),
        (
            "return (lses.softmax(0).flip(0)[..., None] * outs).sum(0), lses.logsumexp(0)",
            "Each part has the share of another.",
        ),
        (
            "return ((lses / lses.sum(0))[..., None] * outs).sum(0), lses.logsumexp(0)",
            "The shares are those of the exponentials of the lse, not of the lse itself.",
        ),
        (
            changed(MERGE, "largest = torch.where(largest.isinf(), torch.zeros_like(largest), largest)", ""),
            "3 parts, and some queries that saw no key in any of them: the output is wrong: element 4 is nan",
        ),
        (
            changed(MERGE, "largest = lses.max(0).values", "largest = torch.zeros_like(lses[0])"),
            "3 parts with scores near 1000: the output is wrong: element 0 is nan, one process gets",
        ),
        (
            changed(MERGE, "largest = lses.max(0).values", "largest = torch.zeros_like(lses[0])"),
            "subtract the largest lse first.",
        ),
        (changed(MERGE, " / safe[:, None]", " / total[:, None]"), "−∞ − (−∞) or 0/0 is not a number."),
        (changed(MERGE, "total.log() + largest", "total.log()"), "Add the largest lse again, which you subtracted."),
        (changed(MERGE, "total.log() + largest", "lses.exp().sum(0)"), "the output is right, the lse is not"),
        (changed(MERGE, "total.log() + largest", "lses.exp().sum(0)"), "the sum of exponentials, not its logarithm"),
        (changed(MERGE, "total.log() + largest", "lses.max(0).values"), "That is the largest lse."),
        (changed(MERGE, "total.log() + largest", "lses.sum(0)"), "the exponentials are to be added"),
        (changed(MERGE, "return out, total.log() + largest", "return out"), "is not a pair of an output and its lse"),
        (changed(MERGE, "lses.max", "lse.max"), "your answer raised NameError"),
    ],
)
def test_a_wrong_merge_is_told_why(merged, body, sentence):
    told = merged(body)
    assert told.startswith("Not yet. ")
    assert sentence in told


def test_two_sums_are_par(decoded):
    assert decoded(DECODE) == "Correct: 9 caches on 2, 3 and 4 ranks. A rank gives 120 bytes, par is 120."


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (OWN + "dist.all_reduce(out)\nreturn out / dist.get_world_size()", "That is the mean of the ranks' outputs"),
        (OWN + "dist.all_reduce(out)\nreturn out", "That is the sum of the ranks' outputs."),
        (OWN + "return out", "That is the attention to its own part of the cache."),
        (
            OWN + "n = torch.tensor(float(k.shape[1]))\n"
            "out = out * n\ndist.all_reduce(out)\ndist.all_reduce(n)\nreturn out / n",
            "You weight the outputs by the numbers of tokens",
        ),
        (changed(DECODE, " / width**0.5", ""), "Divide the scores by the root of the width."),
        (
            changed(DECODE, "dist.all_reduce(largest, dist.ReduceOp.MAX)", "largest = torch.zeros_like(largest)"),
            "With 2 ranks and caches of 7 and 7 tokens and large scores",
        ),
        (
            changed(DECODE, "dist.all_reduce(largest, dist.ReduceOp.MAX)", "largest = torch.zeros_like(largest)"),
            "Subtract from all scores the largest one of all ranks",
        ),
        (changed(DECODE, "dist.all_reduce(largest, dist.ReduceOp.MAX)", ""), "With 2 ranks and caches of 5 and 9"),
        (
            changed(DECODE, "torch.cat([scores, lowest], dim=1).amax(1)", "scores.amax(1)"),
            "(This rank has no tokens: it gives −∞ and zeros.)",
        ),
        (
            """
parts = [None] * dist.get_world_size()
dist.all_gather_object(parts, (k, v))
k, v = (torch.cat([part[i] for part in parts], dim=1) for i in (0, 1))
"""
            + OWN
            + "return out",
            "All 9 outputs are right, but a rank gives",
        ),
        (changed(DECODE, "return both", "result = both"), "the answer is nothing (None), a tensor is expected."),
        ("if dist.get_rank():\n    return q\n" + DECODE.strip(), "rank 0 waits in all_reduce for rank 1"),
    ],
)
def test_a_wrong_decode_is_told_why(decoded, body, sentence):
    told = decoded(body)
    assert told.startswith("Not yet. ")
    assert sentence in told


def test_places_column_by_column_are_right(queued):
    assert queued(PLACES) == "Correct: 6 of 6 cases, first choices before second ones."


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "chosen.T.flatten()",
            "chosen.flatten()",
            "6 tokens, 2 experts, capacity 2: choice",
        ),
        ("place[place >= capacity] = -1", "", "Nobody is dropped: an expert has only so many places."),
        (">= capacity", "> capacity", "Places count from 0, so the capacity itself is no place."),
        ("return place", "place[place >= 0] += 1\nreturn place", "The first place is 0."),
        (
            "return place",
            "place = (place >= 0).long()\nreturn place",
            "That says who is kept; the places are asked for.",
        ),
        (
            "return place.view(chosen.shape[1], chosen.shape[0]).T",
            "return place",
            "the shape is [12], expected [6, 2].",
        ),
        ("return ", "result = ", "the answer is nothing (None), a tensor is expected."),
        ("chosen.T", "choices.T", "your answer raised NameError"),
    ],
)
def test_wrong_places_are_told_why(queued, old, new, sentence):
    told = queued(changed(PLACES, old, new))
    assert told.startswith("Not yet. ")
    assert sentence in told


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            changed(
                changed(PLACES, "chosen.T.flatten()", "chosen.flatten()"),
                "place.view(chosen.shape[1], chosen.shape[0]).T",
                "place.view_as(chosen)",
            ),
            "You serve both choices of a token before the next token.",
        ),
        (
            """
import torch.nn.functional as F
so_far = F.one_hot(chosen, experts).cumsum(0)
place = so_far.gather(2, chosen[..., None]).squeeze(2) - 1
place[place >= capacity] = -1
return place
""",
            "An expert has one queue for first and second choices.",
        ),
    ],
)
def test_another_order_of_the_queue_is_recognised(queued, body, sentence):
    assert sentence in queued(body)


def test_the_cases_have_what_breaks_answers():
    lengths = [lengths for of_size in context_and_experts.CACHES.values() for lengths, _ in of_size]
    assert any(0 in each for each in lengths) and any(len(set(each)) > 1 for each in lengths)
    scales = {scale for of_size in context_and_experts.CACHES.values() for _, scale in of_size}
    assert max(scales) > 50
