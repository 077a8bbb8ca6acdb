"""What an error means is told below it: on real ranks of a machine without a GPU, and for what others would say."""

import pytest
import torch

from ranklab.hangs import raised
from ranklab.outcome import RankOutcome

SETUP = "import torch, torch.distributed as dist"
NO_CUDA = "Likely cause: this torch was built without CUDA"
NO_GPU = "Likely cause: this rank sees no GPU"
DEVICE = "write device = ranklab.device() and use it everywhere: a GPU of the rank's own, or the CPU."
cpu_only = pytest.mark.skipif(torch.backends.cuda.is_built(), reason="this torch was built with CUDA")


@cpu_only
@pytest.mark.parametrize(
    ("cell", "cause", "fix"),
    [
        ("torch.cuda.set_device(0)", NO_CUDA, f"Fix: leave torch.cuda.set_device out, and {DEVICE}"),
        ('torch.ones(1, device="cuda")', NO_CUDA, f"Fix: {DEVICE}"),
        ("torch.nn.Linear(1, 1).cuda()", NO_CUDA, f"Fix: {DEVICE}"),
        ("torch.cuda.Event().record()", NO_CUDA, f"Fix: {DEVICE}"),
        ("torch.cuda.Stream()", NO_CUDA, f"Fix: {DEVICE}"),
        ("torch.tensor([1]).pin_memory()", NO_GPU, f"Fix: {DEVICE}"),
        ('dist.init_process_group("nccl")', NO_CUDA, "Fix: leave the backend out, dist.init_process_group(), or name"),
        ('dist.init_process_group("cpu:gloo,cuda:nccl")', NO_CUDA, "Fix: leave the backend out"),
        ('dist.init_process_group(device_id=torch.device("cuda", 0))', NO_CUDA, "Fix: give a device of the GPU only"),
    ],
)
def test_what_needs_a_gpu_is_told_in_one_sentence_with_the_fix(notebook, cell, cause, fix):
    assert notebook.px(SETUP).error is None
    shown = notebook.px(cell)
    assert shown.text.startswith("ranks 0–3 raised "), shown.text
    assert cause in shown.text and fix in shown.text, shown.text


def test_a_headline_tells_no_path_and_no_port():
    error = "RuntimeError: [/__w/third_party/gloo/gloo/transport/tcp/pair.cc:152] refused, remote=[127.0.0.1]:5548$0"
    headline, _, _ = raised.explain([RankOutcome(0, state="raised", error=error)])
    assert headline == "rank 0 raised RuntimeError: [gloo] refused, remote=[127.0.0.1]$0"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("RuntimeError: No CUDA GPUs are available", NO_GPU),
        ("RuntimeError: Found no NVIDIA driver on your system. Please check …", NO_GPU),
        ("ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!", NO_GPU),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "Likely cause: the device is full."),
        ("ValueError: x", "Likely cause: "),
    ],
)
def test_what_a_machine_with_gpus_would_say(error, cause):
    headline, why, fix = raised.explain([RankOutcome(0, state="raised", error=error)])
    assert headline.startswith("rank 0 raised ")
    assert f"Likely cause: {why}".startswith(cause)
    assert bool(why) == bool(fix) == ("x" not in error.partition(": ")[2])


def test_each_error_has_one_hint_and_each_sentence_ends():
    for hint in raised.HINTS:
        assert hint.cause.endswith(".") and hint.fix.endswith("."), hint
    parts = [hint.part for hint in raised.HINTS]
    assert len(set(parts)) == len(parts)
