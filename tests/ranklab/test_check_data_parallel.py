"""The graders of *data-parallel-and-the-gil*: right answers, and the classic mistakes, each with its sentence."""

import itertools
import threading
from functools import partial

import pytest
import torch
from support import changed

from ranklab import check
from ranklab.check.data_parallel.data_parallel_and_the_gil import remaining

BARE = """
import threading
outputs, grad = [None] * len(chunks), torch.is_grad_enabled()
failed = {}
def work(i):
    torch.set_grad_enabled(grad)
    try:
        outputs[i] = replicas[i](chunks[i])
    except Exception as error:
        failed[i] = error
threads = [threading.Thread(target=work, args=(i,)) for i in range(len(chunks))]
for thread in threads: thread.start()
for thread in threads: thread.join()
for i in sorted(failed): raise failed[i]
return outputs
"""
EXECUTOR = """
from concurrent.futures import ThreadPoolExecutor
grad = torch.is_grad_enabled()
def run(replica, chunk):
    with torch.set_grad_enabled(grad):
        return replica(chunk)
with ThreadPoolExecutor(len(replicas)) as threads:
    return list(threads.map(run, replicas, chunks))
"""


@pytest.fixture
def told(graded):
    return partial(graded, check.run_replicas, "replicas, chunks")


@pytest.mark.parametrize("body", [BARE, EXECUTOR])
def test_threads_that_meet_pass(told, body):
    assert told(body) == "Correct: 12 of 12 groups of replicas, at once, in order, without gradients, and failing."


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "return [replica(chunk) for replica, chunk in zip(replicas, chunks)]",
            "With 2 replicas: they do not run at once: one waited a second for the others, in vain.",
        ),
        (changed(EXECUTOR, "(len(replicas))", "(2)"), "With 3 replicas: they do not run at once"),
        (
            changed(
                changed(BARE, "[None] * len(chunks)", "[]"),
                "outputs[i] = replicas[i](chunks[i])",
                "outputs.append(replicas[i](chunks[i]))",
            ),
            "output 0 is not what replica 0 makes of chunk 0: it is that of replica 1, in the order of finishing.",
        ),
        (
            changed(BARE, "for thread in threads: thread.join()\n", ""),
            "With 2 replicas: your answer returned when 0 of 2 had finished: join the threads.",
        ),
        (
            changed(BARE, "    torch.set_grad_enabled(grad)\n", ""),
            "the caller is under no_grad(), your threads are not: grad mode belongs to a thread.",
        ),
        (
            changed(BARE, "torch.set_grad_enabled(grad)", "torch.set_grad_enabled(False)"),
            "the outputs do not require a gradient, and the caller wants to call backward().",
        ),
        (
            changed(BARE, "for i in sorted(failed): raise failed[i]\n", ""),
            "a replica raised LookupError in its thread, and the caller never hears of it.",
        ),
        (
            changed(BARE, "raise failed[i]", "raise RuntimeError(i)"),
            "raised LookupError, and the caller gets RuntimeErr",
        ),
        (
            changed(BARE, "for i in sorted(failed)", "for i in failed"),
            "With 3 replicas: replicas 1 and later fail, and the caller hears of the first in time",
        ),
        (changed(BARE, "return outputs", "return torch.cat(outputs)"), "your answer returned Tensor, not a list of 2"),
        (changed(BARE, "return outputs", "return outputs[:1]"), "your answer returned 1 outputs, not 2."),
        (
            changed(BARE, "return outputs", "return [output + 1000 for output in outputs]"),
            "With 2 replicas: output 0 is not what replica 0 makes of chunk 0: it is another one.",
        ),
        (
            changed(BARE, "return outputs", "import os\nreturn outputs if os.environ['RANK'] != '1' else None"),
            "Not yet. On rank 1, with 2 replicas: your answer returned NoneType, not a list of 2 outputs.",
        ),
        ("return replicas.x", "your answer raised AttributeError"),
        ("import threading; threading.Event().wait()", "After 5 s"),
    ],
)
def test_each_mistake_has_its_sentence(told, body, sentence):
    said = told(body)
    assert said.startswith("Not yet.") and sentence in said


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.seen = 0, []
        self.register_buffer("added", torch.zeros(1))
        self.register_buffer("replaced", torch.zeros(1))

    def forward(self, rows):
        self.calls += 1
        self.seen.append(len(rows))
        self.added.add_(1)
        self.replaced = self.replaced + 1


def test_the_rules_are_those_of_torchs_own_copies():
    for steps, devices, rows in itertools.product((1, 3), (0, 1, 2, 4, 8), (1, 5, 16)):
        module = Counting()
        for _ in range(steps):
            if devices < 2:
                torch.nn.DataParallel(module)(torch.empty(rows, 1)) if devices == 0 else module(torch.empty(rows, 1))
                continue
            for device, chunk in enumerate(torch.empty(rows, 1).chunk(devices)):
                replica = module._replicate_for_data_parallel()
                for name, buffer in module._buffers.items():
                    setattr(replica, name, buffer if device == 0 else buffer.clone())
                replica(chunk)
        left = module.calls, len(module.seen), int(module.added), int(module.replaced)
        assert left == remaining(steps, devices, rows), (steps, devices, rows)


def always(choose):
    """An answer that is right but for what ``choose`` makes of it."""
    return lambda steps, devices, rows: choose(list(remaining(steps, devices, rows)), steps, devices, rows)


def put(place, make):
    def choose(right, steps, devices, rows):
        if devices > 1:
            right[place] = make(steps, devices, rows)
        return right

    return always(choose)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (remaining, "Correct: 45 of 45 cases, all four numbers."),
        (
            lambda s, d, r: (0, s * d, s, 0),
            "With fewer than two GPUs the module itself is called, and nothing is lost.",
        ),
        (put(0, lambda s, d, r: s if r == 1 else 0), "One row makes one replica, and that replica is thrown away"),
        (put(0, lambda s, d, r: 0 if r == 1 else s), "calls is 0, not 1. Each replica sets its own"),
        (put(1, lambda s, d, r: s * d), "chunk makes 1 of 1: 1 in each step."),
        (put(1, lambda s, d, r: s * min(d, r)), "chunk makes 3 of 5: 3 in each step."),
        (put(2, lambda s, d, r: 0), "Only replica 0 shares its memory with the module: one addition in place per"),
        (put(3, lambda s, d, r: s), "replaced is 0, not 1. Each replica sets its own"),
        (lambda s, d, r: (s, s, s), "your answer has 3 numbers, not 4."),
        (lambda s, d, r: None, "With 1 step, 0 GPUs and 1 row: your answer is None, four numbers are expected."),
        (lambda s, d, r: (torch.zeros(2), s, s, s), "calls is 1, not tensor([0., 0.])."),
        (lambda s, d, r: s // d, "your answer raised ZeroDivisionError"),
    ],
)
def test_what_remains(capsys, answer, sentence):
    check.what_remains(answer)
    assert sentence in capsys.readouterr().out


def test_no_hook_for_lost_errors_is_left_behind(told):
    before = threading.excepthook
    told("return []")
    assert threading.excepthook is before
