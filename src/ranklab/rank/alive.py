"""Bytes that an answer keeps alive on a rank, for graders: counted from storages, so that a peak is an exact number.

Runs inside a rank. What the process has taken from the system depends on the allocator and on what ran before; the sum
of the storages that exist after each operation depends on the answer alone.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

LET_GO = 0.001  # seconds in which a thread of gloo lets go of what it sent
SETTLED = 20  # so often in a row nothing may have changed


class Alive:
    """Counts the storages that operations return while a ``with`` block runs.

    Attributes:
        curve: the bytes that are alive after each operation.
    """

    def __init__(self, known: Any) -> None:
        """Count all but the storages of the tensors in ``known``, which were there before the block."""
        self.curve: list[int] = []
        self._known = _storages(known)  # held, so that no new storage gets the address of one that the block frees
        self._storages: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def __enter__(self) -> Alive:
        self._mode = _after_each(self._note)
        self._mode.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._mode.__exit__(*error)
        del self._mode

    def _note(self, tensors: list[Tensor]) -> None:
        for place, storage in _storages(tensors).items():
            if place not in self._known:
                self._storages[place] = storage
        self.curve.append(self._now({}))

    def _now(self, others: Mapping[int, Any]) -> int:
        return sum(storage.nbytes() for place, storage in list(self._storages.items()) if place not in others)

    def left(self, others: Any) -> int:
        """Return the bytes that stay alive after the block, without the storages of the tensors in ``others``."""
        apart = _storages(others)
        least, looked = self._now(apart), 0
        while least and looked < SETTLED:
            time.sleep(LET_GO)
            now = self._now(apart)
            looked = looked + 1 if now >= least else 0
            least = min(least, now)
        return least


def bytes_of(held: Any, apart_from: Any = ()) -> int:
    """Return the bytes of the storages of the tensors in containers and optimizers, each counted once."""
    apart = _storages(apart_from)
    return sum(storage.nbytes() for place, storage in _storages(held).items() if place not in apart)


def peak(curves: Sequence[Sequence[int]]) -> int:
    """Return the peak of code that ran several times, without what threads let go of too late.

    Args:
        curves: the bytes after each operation, one list a run. Where all runs made as many operations, the least of
            each operation counts.
    """
    if len({len(curve) for curve in curves}) > 1:
        return min(max(curve, default=0) for curve in curves)
    return max((min(same) for same in zip(*curves, strict=True)), default=0)


def _storages(held: Any) -> dict[int, Any]:
    """Return the storages of the tensors in ``held``, by what tells them apart."""
    return {(storage := tensor.untyped_storage())._cdata: storage for tensor in _tensors(held)}


def _tensors(held: Any) -> Iterator[Tensor]:
    """Yield the tensors in containers, and in the state of optimizers."""
    import torch

    if isinstance(held, torch.Tensor):
        yield held
    elif isinstance(held, (list, tuple, set)):
        for each in held:
            yield from _tensors(each)
    elif isinstance(held, dict):
        yield from _tensors(list(held.values()))
    elif isinstance(held, torch.optim.Optimizer):
        yield from _tensors(held.state)


def _after_each(note: Callable[[list[Tensor]], None]) -> Any:
    """Return a mode that tells what each operation returned."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Watch(TorchDispatchMode):
        spoke = False  # whether the last operation was a collective

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return "torch._dynamo" in sys.modules  # else the mode imports it: see meter.py

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if self.spoke:
                time.sleep(LET_GO)
            self.spoke = function.namespace == "c10d"
            result = function(*args, **(kwargs or {}))
            note([leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)])
            return result

    return Watch()
