"""How many GPUs this machine shows, asked without importing torch into the notebook's kernel, and who sees them."""

from __future__ import annotations

import os
import shutil
import subprocess

from ..rank import BACKEND


def visible_gpus() -> int:
    """Count the NVIDIA GPUs that a process started from here would see.

    ``CUDA_VISIBLE_DEVICES`` decides where it is set; otherwise ``nvidia-smi -L`` is asked. A machine without
    ``nvidia-smi``, or on which it does not answer within ten seconds, counts as one without GPUs.
    """
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is not None:
        # CUDA stops reading at the first invalid entry; -1 is the usual way to hide all of them.
        names = [name.strip() for name in shown.split(",")]
        valid = names[: names.index("-1")] if "-1" in names else names
        return min(len([name for name in valid if name]), _installed_gpus())
    return _installed_gpus()


def backend_environment(backend: str) -> dict[str, str]:
    """Return the variables that tell a rank its backend, and hide from it the GPUs that it shall not use.

    A group without a named backend takes NCCL where torch sees a GPU (BackendConfig in torch/distributed/
    distributed_c10d.py, 2.13), and NCCL takes no two ranks on one.
    """
    return {BACKEND: backend} | ({"CUDA_VISIBLE_DEVICES": ""} if backend == "gloo" else {})


def _installed_gpus() -> int:
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    try:
        listing = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in listing.stdout.splitlines())
