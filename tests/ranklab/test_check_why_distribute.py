"""The graders of why-distribute: right answers pass, each classic mistake is told in its own sentence."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

from ranklab import check
from ranklab.check.ranks import why_distribute


def said(capsys, grader, answer) -> str:
    grader(answer)
    return capsys.readouterr().out.strip()


def held(model, batch, without=(), size=lambda storage, tensor: storage.nbytes(), shared=True):
    """Count as the solution of the chapter does, with slips on request."""
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: (kept.append(tensor), tensor)[1], lambda t: t):
        total = model(batch).square().mean()
    total.backward()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    adam = torch.optim.Adam(trained)
    adam.step()
    groups = {
        "parameters": list(model.parameters()),
        "buffers": list(model.buffers()),
        "gradients": [parameter.grad for parameter in trained],
        "steps": [state["step"] for state in adam.state.values()],
        "first": [state["exp_avg"] for state in adam.state.values()],
        "second": [state["exp_avg_sq"] for state in adam.state.values()],
    }
    tensors = [tensor for name, group in groups.items() if name not in without for tensor in group]
    if shared:
        tensors += [] if "activations" in without else kept
        kept = []
    elif "activations" not in without:
        kept = list({tensor.untyped_storage().data_ptr(): tensor for tensor in kept}.values())
    found = {tensor.untyped_storage().data_ptr(): size(tensor.untyped_storage(), tensor) for tensor in tensors}
    return sum(found.values()) + sum(tensor.untyped_storage().nbytes() for tensor in kept)


def leaving_out(*names):
    return lambda model, batch: held(model, batch, without=names)


def by_formula(model, batch):
    return 16 * sum(parameter.numel() for parameter in model.parameters())


def elements(model, batch):
    return held(model, batch, size=lambda storage, tensor: storage.nbytes() // tensor.element_size())


def frozen_too(model, batch):
    """Right, but for the state that it thinks frozen parameters have."""
    frozen = [parameter for parameter in model.parameters() if not parameter.requires_grad]
    return held(model, batch) + 3 * sum(parameter.nbytes for parameter in frozen)


def tied_twice(model, batch):
    every = sum(parameter.nbytes for _, parameter in model.named_parameters(remove_duplicate=False))
    return held(model, batch) + 4 * (every - sum(parameter.nbytes for parameter in model.parameters()))


def each_tensor(model, batch):
    """Add up nbytes, tensor by tensor, as one does who does not know of storages."""
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: (kept.append(tensor), tensor)[1], lambda t: t):
        total = model(batch).square().mean()
    total.backward()
    adam = torch.optim.Adam(model.parameters())
    adam.step()
    kept += [tensor for state in adam.state.values() for tensor in state.values()]
    kept += [*model.parameters(), *model.buffers(), *(parameter.grad for parameter in model.parameters())]
    return sum(tensor.nbytes for tensor in kept)


def in_float32(model, batch):
    return held(model, batch, size=lambda storage, tensor: 4 * (storage.nbytes() // tensor.element_size()))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (held, "Correct: five models"),
        (leaving_out("gradients"), "Two linear layers, a batch of 5: "),
        (leaving_out("gradients"), "It leaves out one of these three: the gradients, Adam's first moments"),
        (leaving_out("second"), "It leaves out one of these three: "),
        (leaving_out("first", "second"), "It leaves out two of these three: "),
        (leaving_out("gradients", "first", "second"), "It leaves out all of these three: "),
        (leaving_out("steps"), "It leaves out Adam's step counts"),
        (leaving_out("activations"), "It leaves out the activations that forward saves."),
        (leaving_out("buffers"), "batch norm between them, a batch of 5: "),
        (leaving_out("buffers"), "It leaves out those of the model's buffers that forward does not save."),
        (by_formula, "It leaves out Adam's step counts, one number for each tensor; and the activations"),
        (elements, "That is the number of elements"),
        (lambda model, batch: held(model, batch, shared=False), "It counts weights that forward saves once more"),
        (each_tensor, "It counts what several tensors share once for each of them; count storages."),
        (frozen_too, "It counts gradients and moments of frozen parameters"),
        (tied_twice, "It counts a tied parameter twice."),
        (in_float32, "are parameters, "),
        (lambda model, batch: held(model, batch) + 1000, "1000 bytes more"),
        (lambda model, batch: None, "your answer is None, it should be a number of bytes."),
        (lambda model, batch: 1 / 0, "your answer raised ZeroDivisionError: division by zero"),
    ],
)
def test_training_bytes(capsys, answer, sentence):
    told = said(capsys, check.training_bytes, answer)
    assert sentence in told
    assert told.startswith("Correct" if answer is held else "Not yet. ")
    assert "\n" not in told


def test_the_truth_is_the_ledger_of_the_chapter():
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6))
    count = why_distribute._count(model, torch.ones(5, 6))
    parameters = 6 * 8 + 8 + 8 * 6 + 6
    assert count.parameters == count.gradients == count.moments // 2 == 4 * parameters
    assert count.steps == 16 and count.activations == 4 * 5 * (6 + 8 + 6) and count.saved_twice == 4 * 48


def right(gradient, samples):
    both = torch.cat([gradient.flatten() * samples, torch.tensor([float(samples)])])
    dist.all_reduce(both)
    return (both[:-1] / both[-1]).view_as(gradient)


def in_two_calls(gradient, samples):
    total, count = gradient * samples, torch.tensor(samples)
    dist.all_reduce(total)
    dist.all_reduce(count)
    return total / count


def plain_mean(gradient, samples):
    dist.all_reduce(gradient)
    return gradient / dist.get_world_size()


def plain_sum(gradient, samples):
    dist.all_reduce(gradient)
    return gradient


def not_divided(gradient, samples):
    total = gradient * samples
    dist.all_reduce(total)
    return total


def divided_by_ranks(gradient, samples):
    total = gradient * samples
    dist.all_reduce(total)
    return total / dist.get_world_size()


def divided_by_own(gradient, samples):
    total = gradient * samples
    dist.all_reduce(total)
    return total / max(samples, 1)


def on_rank_zero(gradient, samples):
    total = gradient * samples
    dist.reduce(total, dst=0)
    count = torch.tensor(samples)
    dist.all_reduce(count)
    return total / count if dist.get_rank() == 0 else None


def keeps_its_own(gradient, samples):
    return gradient


STAYS_AWAY = """
def stays_away(gradient, samples):
    if samples:
        dist.all_reduce(gradient)
    return gradient / 2
"""
exec(compile(STAYS_AWAY, "ipykernel_1/2.py", "exec"))  # as a notebook compiles a cell
stays_away = globals()["stays_away"]


def divides_by_none(gradient, samples):
    return gradient / (1 if samples else 0 // samples)


ANSWERS = (right, in_two_calls, plain_mean, plain_sum, not_divided, divided_by_ranks, divided_by_own, on_rank_zero)
for function in (*ANSWERS, keeps_its_own, stays_away, divides_by_none):
    function.__module__ = "__main__"  # travels by value: a rank cannot import this file


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (right, "Correct: 7 divisions on 2, 3 and 4 ranks. Yours takes one collective, and fewer is impossible."),
        (in_two_calls, "Correct: 7 divisions on 2, 3 and 4 ranks. Yours takes 2 calls; one is possible."),
        (plain_mean, "With 2 ranks and shards of 6 and 2 samples: rank 0: element 0 is"),
        (plain_mean, "That is the plain mean, in which every rank counts as much as another"),
        (plain_sum, "With 2 ranks and shards of 6 and 2 samples: rank 0: "),
        (plain_sum, "That is the sum of the gradients, divided by nothing."),
        (not_divided, "That is the sum over samples, not yet divided by their number."),
        (divided_by_ranks, "divided by the number of ranks, not of samples."),
        (divided_by_own, "That is the sum over samples divided by 6, one rank's number."),
        (on_rank_zero, "rank 1: the answer is nothing (None), a tensor is expected."),
        (keeps_its_own, "That is the gradient of one rank alone."),
    ],
)
def test_mean_gradient(notebook, capsys, answer, sentence):
    assert notebook.px("import torch\nimport torch.distributed as dist").error is None
    told = said(capsys, check.mean_gradient, answer)
    assert sentence in told
    assert told.startswith(("Correct", "Not yet. ")) and "\n" not in told


def test_a_rank_without_samples_that_stays_away_is_reported(notebook, capsys, monkeypatch):
    monkeypatch.setattr(why_distribute, "SHARES", {2: ((4, 0),), 3: (), 4: ()})
    assert notebook.px("import torch\nimport torch.distributed as dist").error is None
    told = said(capsys, check.mean_gradient, stays_away)
    assert told.startswith("Not yet. With 2 ranks: After 5 s: rank 0 waits in all_reduce for rank 1")
    assert told.endswith("In this round a rank has no sample; it still has to come to every collective.")


def test_an_error_on_a_rank_without_samples_is_no_missing_call(notebook, capsys, monkeypatch):
    monkeypatch.setattr(why_distribute, "SHARES", {2: ((4, 0),), 3: (), 4: ()})
    told = said(capsys, check.mean_gradient, divides_by_none)
    assert "ZeroDivisionError" in told
    assert "has no sample" not in told


def test_the_sizes_are_those_that_were_tried(notebook, capsys, monkeypatch):
    assert notebook.px("import torch\nimport torch.distributed as dist").error is None
    monkeypatch.setattr(why_distribute, "sizes", lambda: [2, 3])
    assert said(capsys, check.mean_gradient, right).startswith("Correct: 5 divisions on 2 and 3 ranks.")
