"""No memory of a GPU is held once the ranks are stopped, or their notebook was killed."""

import subprocess

import psutil
import pytest
from faults_catalogue import GPUS, WAYS
from support import Notebook, eventually, owner, processes_of, started

from ranklab.system.gpus import visible_gpu_names

NO_GPU = "this test needs an NVIDIA GPU, and nvidia-smi shows none here"
pytestmark = pytest.mark.skipif(not visible_gpu_names(), reason=NO_GPU)
ASK = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
BIG = "held = torch.ones(1 << 28, device=device)"  # a gibibyte on each rank


def used() -> int:
    """Return the megabytes that all processes hold on all GPUs."""
    return sum(map(int, subprocess.run(ASK, capture_output=True, text=True, check=True).stdout.split()))


def test_nothing_is_left_on_the_gpu_after_stop():
    notebook, before = Notebook(), used()
    assert notebook.run("import ranklab").error is None
    with started(notebook, f'ranklab.start(2, backend="{GPUS}")'):
        assert notebook.px(f"{WAYS[GPUS].setup}\n{WAYS[GPUS].start}\n{BIG}", "--timeout 60").error is None
        assert used() > before + 2000
        assert [tensor.device.type for tensor in notebook.names["world"].pull("held")] == ["cpu", "cpu"]
        import torch

        assert not torch.cuda.is_initialized()
    assert eventually(lambda: used() < before + 100)


def test_nothing_is_left_on_the_gpu_after_a_killed_kernel():
    before = used()
    fill = "import torch; held = torch.ones(1 << 28, device='cuda'); torch.cuda._sleep(10**12)"
    process, home = owner(f'world.view([0, 1]).execute("{fill}", block=False); import time; time.sleep(600)', GPUS)
    ours = processes_of(home)
    assert eventually(lambda: used() > before + 2000)
    process.kill()
    process.wait(300)
    assert psutil.wait_procs(ours, timeout=300)[1] == []
    assert eventually(lambda: used() < before + 100)
