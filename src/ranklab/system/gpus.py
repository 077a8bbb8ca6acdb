"""How many GPUs this machine shows, asked without importing torch into the notebook's kernel, and who sees them."""

from __future__ import annotations

import itertools
import os
import subprocess

from . import nvidia_smi

VISIBLE = "CUDA_VISIBLE_DEVICES"
ENGINES = "RANKLAB_ENGINES"  # the launcher of ranks that ranklab.start(engines=…) has asked for


def own_gpu(
    local_rank: int, local_world_size: int, visible: int, one_each: bool = False, shared: bool = False
) -> int | None:
    """Return which of the GPUs that a rank sees it uses, None where there are too few.

    Args:
        local_rank: number of the rank on its node.
        local_world_size: ranks on that node.
        visible: how many GPUs the rank sees.
        one_each: whether its launcher may show each rank a GPU that the others do not see.
        shared: whether several ranks may use the same one.
    """
    if shared and visible:
        return local_rank % visible
    if visible >= local_world_size:
        return local_rank
    return 0 if visible == 1 and one_each else None


def visible_gpus() -> int:
    """Count the NVIDIA GPUs that a process started from here would see."""
    return len(visible_gpu_names())


def visible_gpu_names() -> list[str]:
    """Name the NVIDIA GPUs that a process started from here would see, in its order.

    ``CUDA_VISIBLE_DEVICES`` decides where it is set; otherwise ``nvidia-smi -L`` is asked. A machine without
    ``nvidia-smi``, or on which it does not answer within ten seconds, counts as one without GPUs.

    Returns:
        Names that no two GPUs share (UUIDs), to be compared and never shown.
    """
    installed = _installed_gpus()
    shown = os.environ.get(VISIBLE)
    if shown is None or not installed:
        return installed
    names = (_read_name(entry.strip(), installed) for entry in shown.split(","))
    # CUDA stops reading at the first invalid entry; -1 is the usual way to hide all of them.
    return list(itertools.takewhile(bool, names))


def _read_name(entry: str, installed: list[str]) -> str:
    """Return the GPU that an entry of ``CUDA_VISIBLE_DEVICES`` means, a number or the start of a UUID, or ""."""
    if entry.isdigit():
        return installed[int(entry)] if int(entry) < len(installed) else ""
    if entry.startswith("MIG-"):  # a part of a GPU
        return entry
    return next((name for name in installed if entry and name.startswith(entry)), "")


def _installed_gpus() -> list[str]:
    try:
        return [card.name for card in nvidia_smi.read_cards(nvidia_smi.ask("-L"))]
    except (OSError, subprocess.TimeoutExpired):  # a driver that is broken; the doctor asks again, and says so
        return []
