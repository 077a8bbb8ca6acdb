"""Graders of the chapter *why-distribute*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...layout import name_ranks
from ..grading import listed, number
from ..verdict import NotYet, Verdict, correct, grader, not_yet
from ..worlds import Case, attempts, difference, sizes

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from ...rank.smaller import Attempt

# How many samples each rank has: first the shares that tell most slips apart, and with equal ones a mean is right.
SHARES = {2: ((6, 2), (4, 4), (5, 0)), 3: ((3, 3, 1), (0, 2, 7)), 4: ((2, 2, 2, 1), (1, 9, 0, 3))}


@grader
def training_bytes(answer: Callable[[Module, Tensor], int]) -> Verdict:
    """Grade the count of the bytes that training holds, on five models, against their live tensors.

    Args:
        answer: ``training_bytes(model, batch)`` returns the bytes of parameters, buffers, gradients, the state of
            Adam after a step, and what ``model(batch).square().mean()`` saves for the backward pass; each storage
            counts once. The model is the answer's to train.

    Exercise of the chapter *why-distribute*.
    """
    for words, make in _models():
        truth = _count(*make())
        given = number(answer, words, *make(), what="a number of bytes")
        if given != truth.total:
            return not_yet(f"{words}: {truth.total} bytes are held, your answer is {given:g}. {truth.why(given)}")
    return correct("five models, and every byte of their live tensors is in your count.")


@dataclass
class _Counted:
    """Bytes by what they are for, each storage once; and what some slips add or leave out."""

    parameters: int
    buffers: int
    gradients: int
    moments: int
    steps: int
    activations: int
    elements: int
    saved_twice: int
    frozen: int
    tied: int
    buffers_saved: int
    unshared: int

    @property
    def total(self) -> int:
        return self.parameters + self.buffers + self.gradients + self.moments + self.steps + self.activations

    def why(self, given: float) -> str:
        """Say which slip, or which two, lead to the given number."""
        # Gradients and each of the two moments are as large as one another, so a number cannot tell them apart.
        three = "the gradients, Adam's first moments, Adam's second moments"
        slips = {
            f"one of these three: {three}": self.gradients,
            f"two of these three: {three}": 2 * self.gradients,
            f"all of these three: {three}": 3 * self.gradients,
            "Adam's step counts, one number for each tensor": self.steps,
            "the activations that forward saves": self.activations,
            "the model's buffers": self.buffers,
            "those of the model's buffers that forward does not save": self.buffers - self.buffers_saved,
        }
        added = {
            "weights that forward saves once more, though they share the parameters' storage": self.saved_twice,
            "gradients and moments of frozen parameters, which have none": self.frozen,
            "a tied parameter twice": self.tied,
        }
        if given == self.elements:
            return "That is the number of elements; one has element_size() bytes."
        if given == self.unshared:
            return "It counts what several tensors share once for each of them; count storages."
        for name, size in added.items():
            if size and given == self.total + size:
                return f"It counts {name}."
        for count in (1, 2, 3):
            for names in itertools.combinations([name for name, size in slips.items() if size], count):
                if given == self.total - sum(slips[name] for name in names):
                    return f"It leaves out {'; and '.join(names)}."
        much = "more" if given > self.total else "less"
        return f"That is {abs(given - self.total):g} bytes {much}: {self.parts()}."

    def parts(self) -> str:
        """Name the parts that make the total."""
        moments = f"{self.moments} of moments, {self.steps} of step counts"
        held = f"{self.parameters} are parameters, {self.gradients} gradients, {moments}"
        return f"{held}, {self.buffers} of buffers, {self.activations} of activations"


def _models() -> Iterator[tuple[str, Callable[[], tuple[Module, Tensor]]]]:
    """Yield what is to be counted, and a function that makes it: the model and a batch."""
    import torch
    from torch import nn

    def plain():
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6)), torch.ones(5, 6)

    def normal():
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)), torch.ones(5, 6)

    def double():
        return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6)).double(), torch.ones(7, 6).double()

    def tied():
        model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))
        model[2].weight = model[0].weight
        return model, torch.ones(4, 6)

    def frozen():
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6))
        model[0].requires_grad_(False)
        return model, torch.ones(5, 6)

    yield "Two linear layers, a batch of 5", plain
    yield "Two linear layers with batch norm between them, a batch of 5", normal
    yield "Two linear layers of float64 with GELU, a batch of 7", double
    yield "Two linear layers that share one weight, a batch of 4", tied
    yield "Two linear layers, the first one frozen, a batch of 5", frozen


def _count(model: Module, batch: Tensor) -> _Counted:
    """Train for one step and count what is held, from the tensors themselves."""
    import torch

    optimizer = torch.optim.Adam(parameter for parameter in model.parameters() if parameter.requires_grad)
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    parameters, seen = list(model.parameters()), set()
    states = [*optimizer.state.values()]
    moments = [state[name] for state in states for name in ("exp_avg", "exp_avg_sq")]
    steps = [state["step"] for state in states]
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    groups = {
        "parameters": parameters,
        "buffers": list(model.buffers()),
        "gradients": gradients,
        "moments": moments,
        "steps": steps,
        "activations": kept,
    }
    elements, sizes = 0, dict.fromkeys(groups, 0)
    for name, group in groups.items():
        for tensor in group:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in seen:
                seen.add(storage.data_ptr())
                sizes[name] += storage.nbytes()
                elements += storage.nbytes() // tensor.element_size()
    by_storage = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in kept}
    own = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    saved_twice = sum(size for place, size in by_storage.items() if place in own)
    buffers_saved = sum(by_storage.get(buffer.untyped_storage().data_ptr(), 0) for buffer in model.buffers())
    frozen = 3 * sum(parameter.nbytes for parameter in parameters if not parameter.requires_grad)
    every = list(model.named_parameters(remove_duplicate=False))
    tied = 4 * (sum(parameter.nbytes for _, parameter in every) - sum(parameter.nbytes for parameter in parameters))
    unshared = sum(tensor.nbytes for group in groups.values() for tensor in group)
    return _Counted(
        **sizes,
        elements=elements,
        saved_twice=saved_twice,
        frozen=frozen,
        tied=tied,
        buffers_saved=buffers_saved,
        unshared=unshared,
    )


@grader
def mean_gradient(answer: Callable[[Tensor, int], Tensor]) -> Verdict:
    """Grade the mean of gradients over shards that need not be equal, on 2, 3 and 4 ranks.

    Args:
        answer: ``mean_gradient(gradient, samples)`` runs on every rank, inside a process group. It gets the gradient
            of the mean loss over the rank's samples and how many they are, and returns, on every rank, the gradient
            of the mean loss over all samples. A rank without samples gets zeros.

    Exercise of the chapter *why-distribute*.
    """
    tried = sizes()
    every = list(_shards(tried))
    full = [case for case in every if _all_have_samples(case)]
    done = attempts(answer, full)
    _compare(full, done)
    # By themselves, because a rank that leaves early breaks the meeting of the others, in words that are gloo's.
    rest = [case for case in every if not _all_have_samples(case)]
    away = "In this round a rank has no sample; it still has to come to every collective."
    partly = attempts(answer, rest, hung=away)
    _compare(rest, partly)
    calls = sum(done[0][0].calls.values())
    yours = "one collective, and fewer is impossible" if calls == 1 else f"{calls} calls; one is possible"
    return correct(f"{len(every)} divisions on {listed(tried)} ranks. Yours takes {yours}.")


def _compare(cases: list[Case], done: list[list[Attempt]]) -> None:
    """Compare with one process; where an answer differs, raise how."""
    for case, ranks in zip(cases, done, strict=True):
        wanted = _mean(case)
        for rank, attempt in enumerate(ranks):
            told = difference(attempt.result, wanted)
            if told:
                raise NotYet(f"With {case}: {name_ranks([rank])}: {told}{_slip(attempt.result, case)}")


def _all_have_samples(case: Case) -> bool:
    return all(samples for _, samples in case.arguments)


def _shards(tried: Sequence[int]) -> Iterator[Case]:
    import torch

    for size in tried:
        for shares in SHARES[size]:
            given = []
            for rank, samples in enumerate(shares):
                gradient = torch.arange(6.0).reshape(2, 3) * (rank + 1) - 5 * rank + 1
                given.append((gradient * bool(samples), samples))
            yield Case(size, tuple(given), f"shards of {', '.join(map(str, shares[:-1]))} and {shares[-1]} samples")


def _mean(case: Case) -> Tensor:
    """Return the one-process answer."""
    weighted: Any = sum(gradient * samples for gradient, samples in case.arguments)
    return weighted / sum(samples for _, samples in case.arguments)


def _slip(got: Any, case: Case) -> str:
    import torch

    gradients = torch.stack([gradient for gradient, _ in case.arguments])
    shares = [samples for _, samples in case.arguments]
    weighted: Any = sum(gradient * samples for gradient, samples in case.arguments)
    slips = [
        (gradients.mean(0), "the plain mean, in which every rank counts as much as another; count samples"),
        (gradients.sum(0), "the sum of the gradients, divided by nothing"),
        (weighted, "the sum over samples, not yet divided by their number"),
        (weighted / case.size, "the sum over samples divided by the number of ranks, not of samples"),
        *[(each, "the gradient of one rank alone") for each in gradients],
        *[(weighted / n, f"the sum over samples divided by {n}, one rank's number") for n in shares if n],
    ]
    for slip, words in slips:
        if not difference(got, slip):
            return f" That is {words}."
    return ""
