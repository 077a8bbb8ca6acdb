"""The graders of the chapter *mixed-precision*: right answers and classic mistakes, each told in its own sentence."""

from functools import partial

import pytest
from support import changed

from ranklab import check
from ranklab.check.data_parallel import mixed_precision

CLIPPED = """
scaler.unscale_(optimizer)
torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
scaler.step(optimizer)
scaler.update()
"""
SCALED = """
gradients = torch.cat([p.grad.flatten() for p in parameters]) / scale
if not sharded:
    dist.all_reduce(gradients)
    gradients /= dist.get_world_size()
found = (~gradients.isfinite()).any().float()
if sharded:
    dist.all_reduce(found, dist.ReduceOp.MAX)
if found:
    return scale / 2
for p, part in zip(parameters, gradients.split([p.numel() for p in parameters])):
    p.data -= rate * part.view_as(p)
return scale
"""
WIDE = """
size = dist.get_world_size()
padded = torch.nn.functional.pad(share, (0, -len(share) % size))
if len(padded) == 0:
    return padded
shares = torch.empty_like(padded)
dist.all_to_all_single(shares, padded)
piece = shares.view(size, -1).float().sum(0).bfloat16()
whole = torch.empty_like(padded)
dist.all_gather_single(whole, piece)
return whole[: len(share)]
"""
GATHERED = """
parts = [torch.empty_like(share) for _ in range(dist.get_world_size())]
dist.all_gather(parts, share)
return sum(part.float() for part in parts).bfloat16()
"""


@pytest.fixture
def clipped(graded):
    return partial(graded, check.clipped_step, "model, optimizer, scaler, limit")


@pytest.fixture
def scaled(graded):
    return partial(graded, check.scaled_step, "parameters, rate, scale, sharded")


@pytest.fixture
def summed(graded):
    return partial(graded, check.wide_sum, "share")


def test_unscale_then_clip_is_right(clipped):
    assert clipped(CLIPPED) == (
        "Correct: on 2, 3 and 4 ranks the weights are those of float32, and all ranks skip the step that overflows."
    )


def test_a_limit_times_the_scale_is_right_too(clipped):
    body = changed(CLIPPED, "limit)", "limit * scaler.get_scale())")
    assert clipped(changed(body, "scaler.unscale_(optimizer)\n", "")).startswith("Correct")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "scaler.unscale_(optimizer)\n",
            "",
            "With 2 ranks: rank 0: step 1, limit 1: the weights move by a norm of 0.000977, expected 1: "
            "you clipped gradients that were still multiplied by the scale: unscale them first.",
        ),
        ("torch.nn.utils.clip_grad_norm_(model.parameters(), limit)\n", "", "the gradient was not clipped before"),
        ("limit)", "1.0)", "step 4, limit 0.25: the weights move by a norm of 1, expected 0.25."),
        ("scaler.step(optimizer)", "pass", "they did not move at all"),
        ("scaler.step(optimizer)", "optimizer.step()", "overflowed, and the weights changed all the same."),
        ("scaler.update()", "scaler.update(1024.0)", "step 2: the scale is 1024, expected 512"),
        ("scaler.update()", "", "RuntimeError: unscale_() is being called after step()"),
        ("limit)", "limit * scaler.get_scale())", "the gradient was not clipped before the step."),
        ("scaler.unscale_(optimizer)", "scaler.unscale_(worlds)", "NameError"),
    ],
)
def test_a_wrong_clip_is_told_why(clipped, old, new, sentence):
    told = clipped(changed(CLIPPED, old, new))
    assert told.startswith("Not yet. ")
    assert sentence in told


def test_a_step_with_scaled_gradients_is_told(clipped):
    body = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)\noptimizer.step()"
    assert "gradients that are still multiplied by the scale" in clipped(body)


def test_a_scaler_by_hand_is_right(scaled):
    assert scaled(SCALED) == (
        "Correct: 24 steps on 2, 3 and 4 ranks, and all ranks skip the same ones. You made 1 call a step, par is 1."
    )


def test_a_second_call_stands_beside_par(scaled):
    assert "You made 2 calls a step, par is 1" in scaled(changed(SCALED, "if sharded:\n", "if True:\n"))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (" / scale\n", "\n", "You did not divide the gradients by the scale."),
        ("    gradients /= dist.get_world_size()\n", "", "You did not divide the sum by the number of ranks."),
        ("    dist.all_reduce(gradients)\n    gradients /=", "    worlds =", "a step with this rank's own gradient"),
        (
            "if not sharded:\n",
            "if True:\n",
            "finite gradients, different parameters: rank 0: the parameters are wrong after a step with finite "
            "gradients. You averaged, although each rank owns different parameters.",
        ),
        ("    p.data -= ", "    p.data - ", "They did not change."),
        (
            "if found:\n    return scale / 2\n",
            "",
            "With 2 ranks and an infinity on the last rank, the same parameters: rank 0: the gradients of rank 1 are "
            "not finite, but this rank's parameters changed anyway.",
        ),
        ("return scale / 2", "return scale", "the scale is 1024, expected 512: the gradients of rank 1 are not finite"),
        ("    return scale / 2\n", "    scale = scale / 2\n", "but this rank's parameters changed anyway."),
        ("    dist.all_reduce(found, dist.ReduceOp.MAX)\n", "    pass\n", "different parameters: rank 0: the gradi"),
        ("(~gradients.isfinite())", "gradients.isinf()", "a NaN on rank 0, the same parameters: rank 0: the gradients"),
        ("view_as(p)\nreturn scale", "view_as(p)\nreturn scale * 2", "the scale changed from 1024 to 2048."),
        ("view_as(p)\nreturn scale", "view_as(p)", "your function returned None, it should return the scale."),
    ],
)
def test_a_wrong_scaler_is_told_why(scaled, old, new, sentence):
    told = scaled(changed(SCALED, old, new))
    assert told.startswith("Not yet. With 2 ranks")
    assert sentence in told


def test_a_rank_that_looks_before_it_shares_leaves_the_others_waiting(scaled):
    early = "if not gradients.isfinite().all():\n    return scale / 2\nif not sharded:\n"
    told = scaled(changed(SCALED, "if not sharded:\n", early))
    assert "rank 0 waits in all_reduce for rank 1" in told
    assert "has to make the same calls as the others" in told


@pytest.mark.parametrize(
    "shared", ["gradients.clone()", "gradients.bfloat16()", "(~gradients.isfinite()).to(torch.uint8)"]
)
def test_shards_that_are_shared_whole_to_look_for_an_infinity_are_told(scaled, shared):
    """One infinity is found that way, too, but only as long as the shards of all ranks have one size."""
    body = changed(SCALED, "(~gradients.isfinite()).any().float()", shared)
    body = changed(body, "dist.ReduceOp.MAX)\n", "dist.ReduceOp.SUM)\n")
    told = scaled(
        changed(body, "if found:\n", "if not (found.isfinite() if found.is_floating_point() else found == 0).all():\n")
    )
    assert told.startswith("Not yet. ")
    assert "finite gradients, different parameters: rank 0: the step is right here, but this rank shares" in told


def test_shards_that_are_summed_are_told(scaled):
    halved = "    gradients /= dist.get_world_size()\n"
    told = scaled(changed(SCALED, halved, halved + "else:\n    dist.all_reduce(gradients)\n"))
    assert "You summed, although each rank owns different parameters." in told


def test_an_exchange_of_pieces_is_right_and_par(summed):
    assert summed(WIDE) == (
        "Correct: 15 sums on 2, 3 and 4 ranks, each rounded once. "
        "With 4 ranks and 1000 elements each rank sends 3000 bytes in a ring, par is 3000."
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("dist.all_reduce(share)\nreturn share", "It was rounded at each addition: add in float32, and round once."),
        ("wide = share.float()\ndist.all_reduce(wide)\nreturn wide", "the dtype is float32, expected bfloat16."),
        (
            "wide = share.float()\ndist.all_reduce(wide)\nreturn wide.bfloat16()",
            "With 2 ranks and 1000 elements: the sums are right, but a rank sends 4000 bytes, par is 2000",
        ),
        (GATHERED, "With 3 ranks and 1000 elements: the sums are right, but a rank sends 4000 bytes, par is"),
        ("return share", "That is the rank's own tensor, unchanged."),
        (changed(WIDE, "[: len(share)]", ""), "the shape is [2], expected [1]."),
        (changed(WIDE, "return whole", "whole"), "the answer is nothing (None), a tensor is expected."),
    ],
)
def test_a_wrong_sum_is_told_why(summed, body, sentence):
    told = summed(body)
    assert told.startswith("Not yet. With ")
    assert sentence in told


def test_the_shares_lose_something_in_bfloat16():
    shares = [mixed_precision._share(1000, rank) for rank in range(4)]
    narrow = shares[0]
    for share in shares[1:]:
        narrow = narrow + share
    assert not narrow.equal(sum(share.float() for share in shares).bfloat16())
