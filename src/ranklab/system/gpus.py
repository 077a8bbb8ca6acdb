"""How many GPUs this machine shows, asked without importing torch into the notebook's kernel, and who sees them."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Mapping

from . import nvidia_smi

VISIBLE = "CUDA_VISIBLE_DEVICES"
WHOLE, PART = "GPU-", "MIG-"  # what the UUID of a GPU, and of a part of one, begins with
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


def visible_gpu_names(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Name the NVIDIA GPUs that a process started from here would see, in its order.

    ``CUDA_VISIBLE_DEVICES`` decides where it is set; otherwise ``nvidia-smi -L`` is asked. A machine without
    ``nvidia-smi``, or on which it does not answer within ten seconds, counts as one without GPUs. A part of a GPU (MIG)
    counts where ``CUDA_VISIBLE_DEVICES`` names it; otherwise the whole GPU does, as torch counts them.

    Args:
        environment: of the process; this one's where nothing is said.

    Returns:
        Names that no two GPUs share (UUIDs), to be compared and never shown.
    """
    installed = _installed_gpus()
    shown = environment.get(VISIBLE)
    if shown is None or not installed:
        return installed
    return _read_list(shown, installed)


def is_part(name: str) -> bool:
    """Say whether a name is that of a part of a GPU, under its new name (``MIG-…``) or its old (``MIG-GPU-…/1/0``)."""
    return name.startswith(PART)


def _read_list(shown: str, installed: list[str]) -> list[str]:
    """Return the GPUs that a value of ``CUDA_VISIBLE_DEVICES`` shows.

    As torch reads it (``_parse_visible_devices`` and ``_device_count_nvml`` in torch/cuda/__init__.py, 2.13): the first
    entry says what kind of list it is, the first entry that is none of that kind ends it (``-1`` and ``NoDevFiles`` are
    such entries), and a list with an entry twice shows nothing.
    """
    if is_part(shown):
        names = list(itertools.takewhile(is_part, shown.split(",")))
        return names if _differ(names) else []
    if shown.startswith(WHOLE):
        entries = list(itertools.takewhile(lambda entry: entry.startswith(WHOLE), shown.split(",")))
        names = [_beginning_with(entry, installed) for entry in entries]
    else:
        entries = list(itertools.takewhile(bool, map(_leading_number, shown.split(","))))
        names = [installed[int(entry)] if int(entry) < len(installed) else "" for entry in entries]
    names = list(itertools.takewhile(bool, names))
    return names if _differ(entries) and _differ(names) else []


def _differ(entries: list[str]) -> bool:
    return len(set(entries)) == len(entries)


def _leading_number(entry: str) -> str:
    """Return the number that an entry begins with, in one spelling, or ""."""
    found = re.match(r"\+?(\d+)", entry.strip())
    return str(int(found[1])) if found else ""


def _beginning_with(entry: str, installed: list[str]) -> str:
    """Return the GPU whose UUID begins so, or "" where it is none, or more than one."""
    meant = [name for name in installed if name.startswith(entry)]
    return meant[0] if len(meant) == 1 else ""


def _installed_gpus() -> list[str]:
    try:
        return [card.name for card in nvidia_smi.read_cards(nvidia_smi.ask("-L"))]
    except (OSError, subprocess.TimeoutExpired):  # a driver that is broken; the doctor asks again, and says so
        return []
