"""Graders of the chapter *context-and-experts*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...rank.meter import meter
from ..grading import asked, listed
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor

HEADS, WIDTH = 3, 8
# What the parts are like, how many there are, and what is added to the lse of the first part and of the others.
PARTS = (
    ("2 parts", 2, 0.0, 0.0),
    ("1 part", 1, 0.0, 0.0),
    ("5 parts", 5, 0.0, 0.0),
    ("3 parts with scores near 1000", 3, 1000.0, 1000.0),
    ("3 parts with scores near −1000, and near 1000 for one query", 3, -1000.0, -1000.0),
    ("2 parts, and some queries that saw no key in one of them", 2, 0.0, 0.0),
    ("3 parts, and some queries that saw no key in any of them", 3, 0.0, 0.0),
)
# Tokens in the cache of each rank, by world size; then how much larger the queries are.
CACHES = {
    2: (((5, 9), 1.0), ((7, 7), 200.0), ((0, 4), 1.0)),
    3: (((6, 6, 6), 1.0), ((1, 12, 4), 200.0), ((3, 0, 0), 1.0)),
    4: (((8, 8, 8, 8), 1.0), ((2, 9, 5, 1), 200.0), ((0, 6, 0, 11), 200.0)),
}
QUEUES = ((6, 2, 2), (8, 4, 3), (12, 4, 1), (12, 3, 24), (1, 2, 1), (20, 5, 4))  # tokens, experts, capacity


# -- merge_parts -------------------------------------------------------------------------------------------------


@grader
def merge_parts(answer: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Verdict:
    """Grade the merge of attention parts.

    Args:
        answer: ``merge_parts(outs, lses)`` is called in the notebook with the outputs, (parts, queries, width), and
            the logarithms of the sums of exponentials, (parts, queries), of attentions to several parts of the keys.
            It returns the output, (queries, width), and the lse, (queries,), of the attention to all keys.

    Exercise of the chapter *context-and-experts*.
    """
    for number, (words, parts, first, others) in enumerate(PARTS):
        outs, lses = _parts(number, parts, first, others)
        out, lse = _merged(outs, lses)
        given, problem = asked(answer, outs.clone(), lses.clone())
        if not problem and not (isinstance(given, (tuple, list)) and len(given) == 2):
            problem = "your answer is not a pair of an output and its lse."
        if not problem and (told := difference(given[0], out)):
            problem = f"the output is wrong: {told}{_merge_slip(given[0], outs, lses)}"
        if not problem and (told := difference(given[1], lse)):
            problem = f"the output is right, the lse is not: {told}{_lse_slip(given[1], lses)}"
        if problem:
            return not_yet(f"{words}: {problem}")
    return correct(f"{len(PARTS)} of {len(PARTS)} cases, large scores and queries without a key among them.")


def _parts(number: int, parts: int, first: float, others: float) -> tuple[Tensor, Tensor]:
    import torch

    draw = torch.Generator().manual_seed(number)
    # In float32 a merge in several steps rounds an lse near 1000 too coarsely.
    outs = torch.randn(parts, 6, 4, generator=draw, dtype=torch.float64)
    lses = 2 * torch.randn(parts, 6, generator=draw, dtype=torch.float64)
    lses[0] += first
    lses[1:] += others
    lses[:, 2] += 2000 * ("for one query" in PARTS[number][0])
    if "in one" in PARTS[number][0]:
        lses[0, :2] = lses[1, 3] = -torch.inf
    if "in any" in PARTS[number][0]:
        lses[:, 1:3] = lses[2, 4] = -torch.inf
    outs[lses.isinf()] = 0.0  # a part in which a query saw no key
    return outs, lses


def _merged(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    lse = lses.logsumexp(0)
    shares = (lses - lse).exp().nan_to_num(0.0)
    return (shares[..., None] * outs).sum(0), lse


def _merge_slip(got: Any, outs: Tensor, lses: Tensor) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    weights = lses.exp()[..., None]
    slips = [
        (outs.mean(0), "That is the mean of the parts: a part with a larger sum of exponentials counts more."),
        (outs.sum(0), "That is the sum of the parts: their shares add up to 1."),
        ((weights * outs).sum(0), "Divide by the sum of the weights."),
        ((lses.softmax(0).flip(0)[..., None] * outs).sum(0), "Each part has the share of another."),
        (
            ((lses / lses.sum(0)).nan_to_num()[..., None] * outs).sum(0),
            "The shares are those of the exponentials of the lse, not of the lse itself.",
        ),
    ]
    if lses.isfinite().all() and lses.max() - lses.max(0).values.min() > 700:
        return _recognised(got, slips, "Each query has a largest lse of its own: subtract that one.")
    if lses.isfinite().all():
        return _recognised(got, slips, "An exponential overflowed, or all vanished: subtract the largest lse first.")
    return _recognised(got, slips, "Where a query saw no key, −∞ − (−∞) or 0/0 is not a number.")


def _lse_slip(got: Any, lses: Tensor) -> str:
    largest = lses.max(0).values
    slips = [
        (lses.exp().sum(0), "That is the sum of exponentials, not its logarithm."),
        (largest, "That is the largest lse."),
        (lses.sum(0), "That is the sum of the logarithms; the exponentials are to be added."),
        ((lses - largest).exp().sum(0).log(), "Add the largest lse again, which you subtracted."),
    ]
    return _recognised(got, slips)


def _recognised(got: Any, slips: list[tuple[Tensor, str]], endless: str = "") -> str:
    """Return the words of the mistake that gives just this; ``endless`` is for nan and infinity."""
    import torch

    if not isinstance(got, torch.Tensor):
        return ""
    for slip, words in slips:
        if (slip.shape, slip.dtype) == (got.shape, got.dtype) and torch.allclose(got, slip, atol=1e-5):
            return f" {words}"
    return f" {endless}" if endless and not got.isfinite().all() else ""


# -- decode ------------------------------------------------------------------------------------------------------


@grader
def decode(answer: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Verdict:
    """Grade the attention of one query to a cache that is cut over the ranks.

    Args:
        answer: ``decode(q, k, v)`` runs on every rank, inside a process group of 2, 3 and 4 ranks. ``q`` (heads,
            width) is equal on all ranks, ``k`` and ``v`` (heads, tokens, width) are the rank's part of the cache,
            which may have no tokens. It returns on every rank the attention to the whole cache, (heads, width). Par,
            in bytes given to all calls together, is heads × (width + 2) numbers of four bytes.

    Exercise of the chapter *context-and-experts*.
    """
    groups = sizes()
    cases = [_cached(size, lengths, scale) for size in groups for lengths, scale in CACHES[size]]
    tried = attempts(functools.partial(_decoded, answer), cases)
    par, most = 4 * HEADS * (WIDTH + 2), 0
    for case, ranks in zip(cases, tried, strict=True):
        q = case.arguments[0][0]
        k, v = (_joined([arguments[place] for arguments in case.arguments]) for place in (1, 2))
        wanted = _attention(q, k, v)
        for rank, attempt in enumerate(ranks):
            got, payload = attempt.result
            if told := difference(got, wanted):
                return not_yet(f"With {case}: rank {rank}: {told}{_decode_slip(got, case, rank)}")
            most = max(most, sum(payload.values()))
    if most > par:
        return not_yet(
            f"All {len(cases)} outputs are right, but a rank gives {most} bytes to its calls, par is {par}: send no "
            "part of the cache, and no number for each token."
        )
    return correct(f"{len(cases)} caches on {listed(groups)} ranks. A rank gives {most} bytes, par is {par}.")


def _joined(parts: list[Tensor]) -> Tensor:
    import torch

    return torch.cat(parts, dim=1)


def _cached(size: int, lengths: tuple[int, ...], scale: float) -> Case:
    import torch

    draw = torch.Generator().manual_seed(size)
    q = scale * torch.randn(HEADS, WIDTH, generator=draw)
    given = tuple((q, *torch.randn(2, HEADS, length, WIDTH, generator=draw).unbind()) for length in lengths)
    words = f"caches of {listed(lengths)} tokens{' and large scores' * (scale > 1)}"
    return Case(size, given, words)


def _decoded(answer: Callable, q: Tensor, k: Tensor, v: Tensor) -> tuple[Any, dict[str, int]]:
    """Runs on a rank, in the group of a case: the output, and the bytes that were given to each operation."""
    try:
        with meter() as counted:
            got = answer(q.clone(), k.clone(), v.clone())
    except (IndexError, RuntimeError, ValueError) as error:
        if not k.shape[1]:
            error.args = (f"{error} (This rank has no tokens: it gives −∞ and zeros.)",)
        raise
    return got, dict(counted.payload)


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (k @ q[..., None]).squeeze(-1) / q.shape[-1] ** 0.5
    return (scores.softmax(-1)[..., None] * v).sum(1)


def _decode_slip(got: Any, case: Case, rank: int) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    import torch

    own = torch.stack([_attention(*arguments) for arguments in case.arguments])
    lengths = torch.tensor([arguments[1].shape[1] for arguments in case.arguments])
    q, k, v = case.arguments[0][0], *(_joined([each[place] for each in case.arguments]) for place in (1, 2))
    slips = [
        (own[rank], "That is the attention to its own part of the cache."),
        (own.mean(0), "That is the mean of the ranks' outputs: a rank with better keys counts more."),
        (own.sum(0), "That is the sum of the ranks' outputs."),
        (
            (own * (lengths / lengths.sum())[:, None, None]).sum(0),
            "You weight the outputs by the numbers of tokens; the sums of exponentials are the right weights.",
        ),
        (_attention(q * q.shape[-1] ** 0.5, k, v), "Divide the scores by the root of the width."),
    ]
    endless = "Subtract from all scores the largest one of all ranks, and think of a rank without tokens."
    return _recognised(got, slips, endless)


# -- places_of ---------------------------------------------------------------------------------------------------


@grader
def places_of(answer: Callable[[Tensor, int, int], Tensor]) -> Verdict:
    """Grade the places that two choices per token get in the queues of the experts.

    Args:
        answer: ``places_of(chosen, experts, capacity)`` is called in the notebook with the choices, (tokens, 2), the
            number of experts and the capacity of each. It returns for each choice its place in the queue of its
            expert, from 0, or −1 where it is dropped. First choices come before second ones, then earlier tokens.

    Exercise of the chapter *context-and-experts*.
    """
    for number, (tokens, experts, capacity) in enumerate(QUEUES):
        chosen = _choices(number, tokens, experts)
        wanted = _queue(chosen, capacity)
        given, problem = asked(answer, chosen.clone(), experts, capacity)
        if not problem and (told := difference(given, wanted)):
            problem = _first_difference(given, wanted, chosen) or told
            problem += _queue_slip(given, chosen, capacity)
        if problem:
            return not_yet(f"{tokens} token{'s' * (tokens > 1)}, {experts} experts, capacity {capacity}: {problem}")
    return correct(f"{len(QUEUES)} of {len(QUEUES)} cases, first choices before second ones.")


def _choices(number: int, tokens: int, experts: int) -> Tensor:
    """Two different experts per token; the first ones are wanted more."""
    import torch

    likes = torch.rand(tokens, experts, generator=torch.Generator().manual_seed(number))
    return (likes / torch.arange(1, experts + 1)).topk(2).indices


def _queue(chosen: Tensor, capacity: int, by_token: bool = False, shared: bool = True) -> Tensor:
    """Serve the choices one after the other."""
    import torch

    tokens, columns = chosen.shape
    order = [(token, column) for column in range(columns) for token in range(tokens)]
    places, served = torch.full_like(chosen, -1), Counter[tuple[int, int | None]]()
    for token, column in sorted(order) if by_token else order:
        queue = int(chosen[token, column]), None if shared else column
        place = served[queue]
        served[queue] += 1
        if place < capacity:
            places[token, column] = place
    return places


def _first_difference(given: Any, wanted: Tensor, chosen: Tensor) -> str:
    import torch

    if not isinstance(given, torch.Tensor) or given.shape != wanted.shape or given.dtype != wanted.dtype:
        return ""
    token, column = (given != wanted).nonzero()[0].tolist()
    return (
        f"choice {column + 1} of token {token}, expert {chosen[token, column]}, gets place {given[token, column]}; "
        f"it should be {wanted[token, column]}."
    )


def _queue_slip(given: Any, chosen: Tensor, capacity: int) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    import torch

    endless = _queue(chosen, chosen.numel())
    slips = [
        (_queue(chosen, capacity, by_token=True), "You serve both choices of a token before the next token."),
        (_queue(chosen, capacity, shared=False), "An expert has one queue for first and second choices."),
        (endless, "Nobody is dropped: an expert has only so many places."),
        (torch.where(endless <= capacity, endless, -1), "Places count from 0, so the capacity itself is no place."),
        (torch.where(endless < capacity, endless + 1, -1), "The first place is 0."),
        ((endless < capacity).long(), "That says who is kept; the places are asked for."),
    ]
    return _recognised(given, slips)
