"""Graders of the chapter *buckets*: when DDP launches, how long backward waits, and which cap a link wants."""

from __future__ import annotations

import numbers
import random
from collections.abc import Callable, Sequence
from typing import Any

from ..grading import PREPARING, entries, number
from ..verdict import Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, sizes

# Floats of each parameter, the cap in floats, and the order in which rank 0 and rank 1 compute with the parameters.
MODELS = (
    ((1, 1, 1, 1), 1, ((0, 1, 2, 3), (0, 1, 2, 3))),
    ((2, 1, 3, 1, 1), 2, ((0, 1, 2, 3, 4), (3, 0, 1, 2, 4))),
    ((1, 1, 1, 1), 1, ((0, 1, 2, 3), (3, 2, 1, 0))),
    ((1, 2, 1, 2, 1, 2), 3, ((5, 0, 4, 1, 3, 2), (5, 4, 0, 1, 2, 3))),
    ((1, 1, 1), 100, ((0, 1, 2), (2, 0, 1))),
)
TOLERANCE = 0.01


@grader
def launched_at(answer: Callable[[list[int], list[list[int]]], list[int]]) -> Verdict:
    """Grade the prediction when DDP launches its buckets, against DDP on two of the reader's ranks.

    Args:
        answer: ``launched_at(ready, buckets)`` returns, for each bucket in the order of the list, how many gradients
            of this rank are complete when DDP launches it. ``ready`` lists the parameters in the order in which their
            gradients get complete on the rank, ``buckets`` the parameters of each bucket. It runs in the notebook.

    Exercise of the chapter *buckets*.
    """
    sizes()
    cases = [Case(2, tuple((floats, cap, order) for order in orders), "") for floats, cap, orders in MODELS]
    # What is counted is torch's own: an answer has no part in it, and torch imports half of itself for the first DDP.
    tried = attempts(_train, cases, patience=PREPARING)
    told = 0
    for ranks in tried:
        for rank, (ready, buckets, counted) in enumerate(each.result for each in ranks):
            words = f"rank {rank}, ready {ready}, buckets {buckets}"
            lists = list(ready), [list(bucket) for bucket in buckets]
            given = entries(answer, words, *lists, what="a list with a count for each bucket")
            if not all(isinstance(each, numbers.Real) for each in given):
                return not_yet(f"{words}: your answer is {given!r}, a list of whole numbers is expected.")
            if given != counted:
                return not_yet(f"{words}: you say {given}, DDP launched at {counted}.{_why(given, ready, buckets)}")
            told += len(counted)
    return correct(f"DDP launched all {told} buckets when you said.")


def _why(given: Any, ready: list[int], buckets: list[list[int]]) -> str:
    """Recognise the classic mistakes; "" for a new one."""
    own = [max(ready.index(place) for place in bucket) + 1 for bucket in buckets]
    right = [max(own[: number + 1]) for number in range(len(own))]
    if given == [len(ready)] * len(buckets):
        return " That is a backward without overlap."
    if given == [launched - 1 for launched in right]:
        return " The gradient that fills the bucket counts too."
    if given == own:
        return " A full bucket also waits for the buckets before it."
    if given == sorted(own):
        return " Buckets go in the order of the list, not in the order in which they fill."
    if given == [sum(len(bucket) for bucket in buckets[: number + 1]) for number in range(len(buckets))]:
        return " This rank's gradients do not get ready in the order of the buckets."
    if given == [min(ready.index(place) for place in bucket) + 1 for bucket in buckets]:
        return " A bucket waits for its last gradient, not for its first."
    return ""


def _train(sizes: tuple[int, ...], cap: int, order: tuple[int, ...]) -> tuple[list, list, list]:
    """Train two steps on a rank: what got ready in the second, DDP's buckets, and when it launched them."""
    import torch
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    from torch.nn.parallel import DistributedDataParallel

    class Summing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = torch.nn.ParameterList(torch.zeros(size) for size in sizes)

        def forward(self) -> torch.Tensor:
            return torch.stack([self.weights[place].sum() for place in order]).sum()

    model = Summing()
    places = {weight.data_ptr(): place for place, weight in enumerate(model.weights)}
    ready: list[int] = []
    launched: list[tuple[list[int], int]] = []
    for place, weight in enumerate(model.weights):
        weight.register_post_accumulate_grad_hook(lambda _, place=place: ready.append(place))

    def hook(state, bucket):  # an annotation would have to be a class, and is a string here
        launched.append(([places[weight.data_ptr()] for weight in bucket.parameters()], len(ready)))
        return allreduce_hook(state, bucket)

    ddp = DistributedDataParallel(model, bucket_cap_mb=4 * cap / 2**20)
    ddp.register_comm_hook(None, hook)
    for _ in range(2):
        ready.clear()
        launched.clear()
        ddp().backward()
    return ready, [bucket for bucket, _ in launched], [count for _, count in launched]


@grader
def exposed(answer: Callable[[list[float], list[float], float, float], float]) -> Verdict:
    """Grade the prediction how long backward waits after its last gradient, against a simulated link.

    Args:
        answer: ``exposed(full, sizes, alpha, beta)`` returns seconds. ``full`` says when each bucket is full, in
            seconds since backward began, ``sizes`` its bytes; the last time is the end of the computation unless
            another is later. A sum takes ``alpha + size * beta``; the link carries one at a time, in bucket order.
            40 backwards, 1 % allowed. It runs in the notebook.

    Exercise of the chapter *buckets*.
    """
    cases = [
        ([1.0], [8e6], 0.0, 1e-7),
        ([1.0, 2.0], [1e6, 1e6], 0.1, 1e-7),
        ([1.0, 2.0, 3.0], [2.5e7, 1e6, 1e6], 0, 1e-7),
    ]
    cases += [([0.1, 3.0], [1e6, 2e6], 0.0, 1e-6), ([3.0, 1.0, 2.0], [1e6, 1e6, 1e6], 0.2, 1e-6)]
    dice = random.Random(0)
    while len(cases) < 40:
        count = dice.randint(1, 6)
        full = [round(dice.uniform(0.1, 1), 2) for _ in range(count)]
        full = full if dice.random() < 0.2 else sorted(full)
        cases.append((full, [dice.randint(1, 25) * 1e6 for _ in full], dice.choice([0, 0.01, 0.1]), 2e-8))
    for full, volumes, alpha, beta in cases:
        words = f"full={full}, sizes={[int(size) for size in volumes]}, alpha={alpha}, beta={beta:g}"
        right = simulated(full, volumes, alpha, beta)
        given = number(answer, words, list(full), list(volumes), alpha, beta)
        if not _close(given, right):
            why = _slip(given, full, volumes, alpha, beta)
            return not_yet(f"{words}: you say {given:.4g}, the link says {right:.4g}.{why}")
    return correct(f"{len(cases)} backwards waited as long as you said.")


def simulated(full: Sequence[float], sizes: Sequence[float], alpha: float, beta: float) -> float:
    """Return how long backward waits: each sum begins when its bucket, and all before it, are full and sent."""
    free = 0.0
    for place, size in enumerate(sizes):
        free = max(free, *full[: place + 1]) + alpha + size * beta
    return free - max(full)


def _slip(given: float, full: list[float], sizes: list[float], alpha: float, beta: float) -> str:
    talk = [alpha + size * beta for size in sizes]
    slips = [
        (sum(talk), "That hides nothing: sums begin while backward computes."),
        (max(0.0, sum(talk) - max(full)), "No sum can begin before the first bucket is full."),
        (talk[-1], "The last sum may still have to wait for the link."),
        (alpha + sum(sizes) * beta, "That is one bucket."),
        (simulated(full, sizes, 0.0, beta), "Each sum pays α."),
        (simulated(sorted(full), sizes, alpha, beta), "A bucket that is full too early waits for those before it."),
        (
            max(when + each for when, each in zip(full, talk, strict=True)) - max(full),
            "The link carries one at a time.",
        ),
        (simulated(full, sizes, alpha, beta) + max(full), "That is all of backward; what is asked is the wait."),
    ]
    return next((f" {why}" for slip, why in slips if _close(given, slip)), "")


@grader
def best_cap(answer: Callable[[list[tuple[float, float]], list[float], float, float], float]) -> Verdict:
    """Grade the choice of a bucket cap for a link: how many of 30 models and links get a cap that is among the best.

    Args:
        answer: ``best_cap(layers, caps, alpha, beta)`` returns one of ``caps``. ``layers`` lists ``(seconds, bytes)``
            of each gradient in ready order: what computing it takes, and its size. A cap is among the best if backward
            takes at most 1 % longer than with any other of ``caps``. It runs in the notebook.

    Exercise of the chapter *buckets*.
    """
    dice, wrong, total = random.Random(1), [], 0
    caps = [1e6, 4e6, 16e6, 64e6, 256e6]
    one_of = f"one of {[int(cap) for cap in caps]}"
    for alpha in (1e-5, 1e-3, 2e-2):
        for rate in (1e7, 6e7, 1e9, 5e10, 2e8):
            for _ in range(2):
                total += 1
                layers = [(dice.uniform(0.5, 20) * 1e-3, dice.choice([1, 2, 4, 9]) * 1e6) for _ in range(24)]
                took = {cap: _backward(layers, cap, alpha, 1 / rate) for cap in caps}
                words = f"{sum(size for _, size in layers) / 1e6:.0f} MB, alpha={alpha:g}, {rate / 1e6:g} MB/s"
                given = number(answer, words, list(layers), list(caps), alpha, 1 / rate, what=one_of)
                if given not in took:
                    return not_yet(f"{words}: your answer is {given!r}, it should be {one_of}.")
                if took[given] > (1 + TOLERANCE) * min(took.values()):
                    wrong.append((given, words, took))
    if not wrong:
        return correct(f"{total} of {total} links have a cap that is among the best.")
    given, words, took = wrong[0]
    best = _best(took)
    said = (
        f"with {given / 1e6:g} MB backward takes {took[given] / took[best]:.3g} times as long as with {best / 1e6:g} MB"
    )
    return not_yet(f"{total - len(wrong)} of {total} are right. The first that is not: {words}: {said}.{_tilt(wrong)}")


def _backward(layers: list[tuple[float, float]], cap: float, alpha: float, beta: float) -> float:
    now, held, full, sizes = 0.0, 0.0, [], []
    for place, (seconds, size) in enumerate(layers):
        now, held = now + seconds, held + size
        if held >= cap or place == len(layers) - 1:
            full.append(now)
            sizes.append(held)
            held = 0.0
    return now + simulated(full, sizes, alpha, beta)


def _tilt(wrong: list[tuple[float, str, dict[float, float]]]) -> str:
    if all(given < _best(took) for given, _, took in wrong):
        return " Where α is large, many sums cost more than they hide."
    if all(given > _best(took) for given, _, took in wrong):
        return " A large bucket begins late, and what is left at the end hides behind nothing."
    return " Neither the smallest nor the largest cap is right everywhere: compute the wait for each."


def _best(took: dict[float, float]) -> float:
    """Return the cap with which backward took least."""
    return min(took, key=took.__getitem__)


def _close(given: float, right: float) -> bool:
    return abs(given - right) <= TOLERANCE * abs(right) + 1e-9
