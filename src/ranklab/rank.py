"""What a reader's cell may ask of the rank it runs on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

BACKEND = "RANKLAB_BACKEND"


def device() -> torch.device:
    """Return the device of this rank: ``cuda:LOCAL_RANK`` where every rank of the node has a GPU, else ``cpu``.

    The index counts the GPUs that this process can see (``CUDA_VISIBLE_DEVICES``). Where a launcher shows each
    rank one GPU only, that GPU is ``cuda:0`` for all of them.

    Returns:
        A ``torch.device``.

    Raises:
        WorldError: called in the notebook's kernel, which is not a rank.

    Used from the chapter *your-first-ranks* on.
    """
    from .errors import WorldError

    if "LOCAL_RANK" not in os.environ:
        raise WorldError("The notebook is not a rank: call ranklab.device() in a %%px cell.")
    import torch

    if os.environ.get(BACKEND, "nccl") != "nccl" or not torch.cuda.is_available():
        return torch.device("cpu")
    visible = torch.cuda.device_count()
    local_rank = int(os.environ["LOCAL_RANK"])
    if visible == 1:
        return torch.device("cuda", 0)
    if local_rank < visible:
        return torch.device("cuda", local_rank)
    return torch.device("cpu")
