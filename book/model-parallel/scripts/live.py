"""A counter of the bytes that are alive in this process. The chapter *sharded* measures with it."""

import sys
import time
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Live(TorchDispatchMode):
    """Keeps weak references to the storages that operations return.

    A storage is the memory behind one or more tensors; the counter asks it
    for its size, so it sees a storage that was emptied. ``curve`` has the sum
    after each operation. What existed before the block is not counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.curve: list[int] = []
        self.spoke = False  # whether the last operation was a collective
        self.storages = weakref.WeakValueDictionary()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Else the mode would import it: a second and 70 MB per rank.
        return "torch._dynamo" in sys.modules

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        """Run one operation; one on a DTensor comes again on its part."""
        if any(kind.__name__ == "DTensor" for kind in types):
            return NotImplemented
        if self.spoke:
            # gloo's threads let go of what they sent a moment after a call.
            time.sleep(0.001)
        self.spoke = function.namespace == "c10d"
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self.storages[storage._cdata] = storage
        self.curve.append(self.now())
        return result

    def now(self) -> int:
        """Return the bytes that are alive."""
        alive = list(self.storages.values())
        return sum(storage.nbytes() for storage in alive)

    def held(self) -> int:
        """Return the bytes that stay, when gloo's threads have let go, too."""
        least, looked = self.now(), 0
        while looked < 20:  # a fifth of a second without a change
            time.sleep(0.01)
            looked = looked + 1 if self.now() >= least else 0
            least = min(least, self.now())
        return least
