"""Values as they leave a rank: every tensor on the CPU.

A tensor on a GPU that is sent as it is would make the notebook's process use that GPU. Runs inside a rank. Standard
library only; torch is looked up where the reader has imported it.
"""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

from .device import in_use

STAY = ("cpu", "meta")  # types of device whose tensors leave a rank as they are


def on_cpu(value: Any) -> Any:
    """Return a value with all of its tensors on the CPU; the value itself where no tensor can be elsewhere.

    Args:
        value: a tensor, or anything that holds some and can be pickled: containers, a model, an optimizer.

    Raises:
        Exception: the value cannot be pickled; then it could not leave the rank either.
    """
    torch = sys.modules.get("torch")
    if torch is None or in_use() is None:
        return value
    if callable(value) and not isinstance(value, torch.nn.Module):
        return value  # a function or a class: ipyparallel sends these in its own way
    file = io.BytesIO()
    _Pickler(file, torch).dump(value)
    return pickle.loads(file.getvalue())


class _Pickler(pickle.Pickler):
    """Pickles tensors as if they were on the CPU.

    A parameter, or another subclass, leads to its tensor by itself: it stays what it is, and shared ones stay shared.
    """

    def __init__(self, file: io.BytesIO, torch: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._torch = torch

    def reducer_override(self, value: Any) -> Any:
        """Return how an object is pickled: called by pickle for each."""
        if type(value) is not self._torch.Tensor or value.device.type in STAY:
            return NotImplemented
        near = value.detach().cpu().requires_grad_(value.requires_grad)
        return near.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
