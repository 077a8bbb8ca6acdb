"""What a reader's cell may ask of the rank it runs on."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from ..system.backends import BACKEND, ON_GPUS, SHARED, named
from ..system.gpus import ENGINES, own_gpu

if TYPE_CHECKING:
    import torch


def device() -> torch.device:
    """Return the device of this rank: a GPU, or ``cpu`` on all ranks of a node with too few GPUs.

    The index of a GPU counts those that this process can see (``CUDA_VISIBLE_DEVICES``), so it is the local rank
    where all ranks of a node see the same list. Some launchers show each rank one GPU only (``srun
    --gpus-per-task=1``, ``torchrun --virtual-local-rank``); then it is ``cuda:0`` for all of them. ranklab does not for
    ranks of its own (without ``engines=``), so under it one visible GPU for several ranks is too few: except where they
    were asked to share, by ``backend="nccl"`` in ``ranklab.start`` or ``ranklab.torchrun``; then rank 0 has the first
    GPU, rank 1 the next, and after the last one it begins again.

    Returns:
        A ``torch.device``.

    Raises:
        WorldError: called in the notebook's kernel, which is not a rank.

    Used from the chapters on data parallelism on.
    """
    from ..errors import WorldError

    if "LOCAL_RANK" not in os.environ:
        raise WorldError("The notebook is not a rank: call ranklab.device() in a %%px cell.")
    import torch

    backend = named(os.environ.get(BACKEND, ON_GPUS.name))
    if backend.device == "cpu" or not (kind := getattr(torch, backend.device)).is_available():
        return torch.device("cpu")
    place = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    same_list_for_all = "TORCHELASTIC_RUN_ID" in os.environ or (BACKEND in os.environ and ENGINES not in os.environ)
    shared = SHARED in os.environ
    gpu = own_gpu(*place, kind.device_count(), one_each=not same_list_for_all, shared=shared)
    return torch.device("cpu") if gpu is None else torch.device(backend.device, gpu)


def in_use() -> Any:
    """Return torch's module of the device of this rank's backend, such as ``torch.cuda``, where the rank uses it.

    Returns:
        None on a rank that computes on the CPU, and where nothing has used the device yet: to ask costs nothing there.
    """
    kind = named(os.environ.get(BACKEND, "")).device
    torch = sys.modules.get("torch")
    if kind == "cpu" or torch is None:
        return None
    module = getattr(torch, kind)
    return module if module.is_initialized() else None
