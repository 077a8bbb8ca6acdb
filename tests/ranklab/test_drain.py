"""A cell of ranks with a GPU ends when the GPU has done what the cell gave to it. The GPU is played."""

import asyncio
import sys
import threading
from types import SimpleNamespace

import pytest

from ranklab.rank import device, drain, errands, on_cpu
from ranklab.rank.watchdog import Watchdog


class GPU:
    """Plays torch.cuda: a device whose work ends when the test says so."""

    def __init__(self, used=(1,), initialized=True):
        self.used, self.initialized = used, initialized
        self.done, self.waited, self.fails = threading.Event(), [], None

    def is_initialized(self):
        return self.initialized

    def device_count(self):
        return 4

    def synchronize(self, index):
        self.waited.append((index, threading.get_ident()))
        assert self.done.wait(300)
        if self.fails:
            raise self.fails


class Shell:
    """Plays a rank's shell: what IPython does around the statements of a cell."""

    def __init__(self, raises=False):
        self.raises, self.shown = raises, []
        self.events = SimpleNamespace(register=lambda *_: None)

    async def run_ast_nodes(self, nodelist, cell_name, interactivity="", compiler=None, result=None):
        return self.raises

    def showtraceback(self, running_compiled_code=False):
        self.shown.append(sys.exc_info()[1])


@pytest.fixture
def gpu(monkeypatch):
    """A rank that computes on the second of four GPUs, whose work has not ended."""
    played = GPU()
    torch = SimpleNamespace(cuda=played, _C=SimpleNamespace(_cuda_hasPrimaryContext=lambda index: index in played.used))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setenv("RANKLAB_BACKEND", "nccl")
    return played


def run(shell, before=lambda: None):
    """Run a cell; return whether it raised, and IPython's result."""
    drain.follow(shell, before)
    result = SimpleNamespace(error_in_exec=None)
    return asyncio.run(shell.run_ast_nodes([], "cell", interactivity="last_expr", result=result)), result


def test_a_cell_ends_with_its_work_on_the_gpu_and_the_watchdog_says_what_it_waits_for(gpu):
    seen = []

    def look():
        while not gpu.waited:
            pass
        seen.append(Watchdog(None).where().draining)
        gpu.done.set()

    thread = threading.Thread(target=look)
    thread.start()
    cleared = []
    raised, _ = run(Shell(), lambda: cleared.append(list(gpu.waited)))
    thread.join()
    assert raised is False and seen == [True] and not drain.waits()
    assert gpu.waited == [(1, threading.get_ident())]  # once, where the rank has memory, in the thread of the cell
    assert cleared == [[]]  # before it


def test_what_the_gpu_raises_is_an_error_of_the_cell(gpu):
    gpu.done.set()
    gpu.fails = RuntimeError("CUDA error: device-side assert triggered")
    shell = Shell()
    raised, result = run(shell)
    assert raised is True and result.error_in_exec is gpu.fails and shell.shown == [gpu.fails]
    assert not drain.waits()


def test_a_cell_that_has_raised_is_told_at_once(gpu):
    assert run(Shell(raises=True))[0] is True
    assert gpu.waited == []


def test_ranks_on_cpus_and_gpus_that_nobody_has_used_cost_nothing(gpu, monkeypatch):
    gpu.initialized = False
    assert run(Shell())[0] is False
    gpu.initialized = True
    monkeypatch.setenv("RANKLAB_BACKEND", "gloo")
    assert run(Shell())[0] is False
    monkeypatch.setenv("RANKLAB_BACKEND", "nccl")
    monkeypatch.delitem(sys.modules, "torch")
    assert run(Shell())[0] is False
    assert gpu.waited == []


class Far:
    """Says of some tensors that they are on a GPU; cpu() brings such a one home."""

    def __init__(self, monkeypatch, torch):
        self.came, cpu = [], torch.Tensor.cpu
        monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: self.came.append(tuple(tensor.shape)) or cpu(tensor))


@pytest.fixture
def far(monkeypatch):
    """A rank on a GPU on which every tensor of this process counts as one of the GPU's."""
    import torch

    monkeypatch.setattr(on_cpu, "in_use", lambda: torch.cuda)
    monkeypatch.setattr(on_cpu, "STAY", ("meta",))
    return Far(monkeypatch, torch)


def test_tensors_come_on_the_cpu_in_whatever_they_stand(far):
    import torch

    model = torch.nn.Linear(2, 3)
    model.tied = model.weight
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    value = {
        "list": [torch.ones(5)],
        "tuple": (torch.zeros(6), "words", 7),
        "model": model,
        "state": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "grows": (torch.ones(8, requires_grad=True) * 2),
    }
    told = on_cpu.on_cpu(value)
    assert {(5,), (6,), (3, 2), (3,), (8,)} <= set(far.came)
    assert torch.equal(told["list"][0], torch.ones(5)) and told["tuple"][1:] == ("words", 7)
    assert isinstance(told["model"].weight, torch.nn.Parameter) and told["model"].tied is told["model"].weight
    assert torch.equal(told["state"]["weight"], model.weight) and told["grows"].requires_grad
    assert told["optimizer"]["state"][0]["exp_avg"].shape == (3, 2)
    assert torch.equal(on_cpu.on_cpu(torch.ones(4)), torch.ones(4)) and (4,) in far.came


def test_functions_and_what_has_no_tensor_stay_what_they_are(far):
    import torch

    assert on_cpu.on_cpu(7) == 7 and on_cpu.on_cpu(None) is None and on_cpu.on_cpu("words") == "words"
    assert on_cpu.on_cpu(run) is run and on_cpu.on_cpu(GPU) is GPU
    assert on_cpu.on_cpu(torch.empty(3, device="meta")).device.type == "meta"


def test_on_ranks_without_a_gpu_a_value_is_sent_as_it_is(monkeypatch):
    import torch

    monkeypatch.setenv("RANKLAB_BACKEND", "gloo")
    value = [torch.ones(3)]
    assert on_cpu.on_cpu(value) is value and device.in_use() is None


def test_what_a_grader_gets_back_comes_on_the_cpu_too(far):
    import torch

    assert errands.unpack(errands.answer(torch.full, (11,), 2.0)).tolist() == [2.0] * 11
    assert (11,) in far.came
