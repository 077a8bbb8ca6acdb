"""A meter for what a rank says to the others: calls, messages and bytes, counted while a block of code runs.

It wraps nothing. torch sends the collectives of a process group through its dispatcher, where a ``TorchDispatchMode``
sees them pass (torch/utils/_python_dispatch.py, 2.13): those of ``torch.distributed``, those that
DistributedDataParallel makes from C++, the functional ones, and what an operation on a DTensor needs. What does not
pass there is not seen: calls of another thread, and torch's symmetric memory. The kernel counts the bytes of every TCP
connection by itself.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import WorldError
from ..system.backends import BACKENDS, SHARED
from .wire import written

# How torch's dispatcher calls an operation (torch/csrc/distributed/c10d/Ops.cpp and Functional.cpp, 2.13): its public
# name, and which argument holds what the rank gives; broadcast_ and recv_ have one tensor for both ways.
OPERATIONS = {
    "allreduce_": ("all_reduce", 0),
    "allreduce_coalesced_": ("all_reduce_coalesced", 0),
    "broadcast_": ("broadcast", 0),
    "reduce_": ("reduce", 0),
    "allgather_": ("all_gather", 1),
    "_allgather_base_": ("all_gather_single", 1),
    "allgather_coalesced_": ("all_gather_coalesced", 1),
    "allgather_into_tensor_coalesced_": ("all_gather_single", 1),
    "reduce_scatter_": ("reduce_scatter", 1),
    "_reduce_scatter_base_": ("reduce_scatter_single", 1),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter_single", 1),
    "alltoall_": ("all_to_all", 1),
    "alltoall_base_": ("all_to_all_single", 1),
    "gather_": ("gather", 1),
    "scatter_": ("scatter", 1),
    "send": ("send", 0),
    "recv_": ("recv", 0),
    "recv_any_source_": ("recv", 0),
    "barrier": ("barrier", None),
    "monitored_barrier_": ("monitored_barrier", None),
    # torch.distributed._functional_collectives, with which DTensor talks too
    "all_reduce": ("all_reduce", 0),
    "all_reduce_": ("all_reduce", 0),
    "all_reduce_coalesced": ("all_reduce_coalesced", 0),
    "all_reduce_coalesced_": ("all_reduce_coalesced", 0),
    "broadcast": ("broadcast", 0),
    "all_gather_into_tensor": ("all_gather_single", 0),
    "all_gather_into_tensor_out": ("all_gather_single", 0),
    "all_gather_into_tensor_coalesced": ("all_gather_single", 0),
    "reduce_scatter_tensor": ("reduce_scatter_single", 0),
    "reduce_scatter_tensor_out": ("reduce_scatter_single", 0),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter_single", 0),
    "all_to_all_single": ("all_to_all_single", 0),
    "shard_dim_alltoall": ("all_to_all_single", 0),
    "isend": ("send", 0),
    "irecv": ("recv", 0),
}
BATCH = "batch_p2p_ops"  # names its operations, "isend" or "irecv", in its first argument; their tensors are its fourth
GROUPS = {"c10d", "_c10d_functional", "_dtensor"}  # the dispatcher's namespaces of what a process group does
NO_COMMUNICATION = {"check_for_nan", "wait_tensor", "_wrap_tensor_autograd", "mesh_get_process_group"}


class Meter:
    """Counts what this rank says to the others while a ``with`` block runs; made by :func:`meter`.

    A second block begins at zero.

    Attributes:
        calls: how often each operation was called, by its public name; ``isend`` counts as ``send``.
        payload: bytes that the rank gave to each operation; for ``broadcast`` and ``recv`` the size of their tensor.
        messages: how many messages the rank sent by itself (``send``, ``isend``). What a collective sends inside is
            its own affair, and is seen in ``wire``.
        wire: bytes that the kernel took from this rank for other ranks, gloo's own headers among them; None where
            that is not known, and :attr:`why` says why.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        """Forget an earlier block; whoever kept its counts keeps them."""
        self.calls: Counter[str] = Counter()
        self.payload: Counter[str] = Counter()
        self.wire: int | None = None
        self.why = "The block has not ended yet."
        self._elsewhere: set[str] = set()

    @property
    def messages(self) -> int:
        """How many messages the rank sent by itself."""
        return self.calls["send"]

    def __enter__(self) -> Meter:
        self._named = "RANK" in os.environ
        if not self._named and not _in_a_group():
            raise WorldError(
                "The notebook is not a rank: call ranklab.meter() in a %%px cell, or in a program of your own after "
                "init_process_group()."
            )
        self._begin()
        self._ours = _notebook_connections()
        self._before = written(self._ours)
        self._mode = _watch(self._count)
        self._mode.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._mode.__exit__(*error)
        del self._mode  # what is left can be pulled into the notebook
        after = written(self._ours)
        if self._before is None or after is None:
            self.why = "This system does not count the bytes of a connection; Linux does."
        elif not self._named:  # nor is MASTER_PORT, as a rule, by which alone the store is told from a rank
            self.why = (
                "Which connections lead to other ranks is not known: before init_process_group(), set RANK and "
                "MASTER_PORT in the environment, as torchrun does."
            )
        elif self._elsewhere:
            self.why = f"Tensors on {', '.join(sorted(self._elsewhere))} travel without the kernel's TCP."
        elif gone := set(self._before) - set(after):
            which = (
                "1 connection to another rank was" if len(gone) == 1 else f"{len(gone)} connections to other ranks were"
            )
            self.why = f"{which} closed in the block."
        else:
            self.wire = sum(after.values()) - sum(self._before.values())
            self.why = ""

    def _count(self, operation: str, arguments: tuple[Any, ...]) -> None:
        if operation == BATCH:
            for each, tensor in zip(arguments[0], arguments[3], strict=True):
                self._count(each, (tensor,))
            return
        name, given = OPERATIONS.get(operation, (operation.strip("_"), 0))
        self.calls[name] += 1
        tensors = [] if given is None else list(_tensors(arguments[given]))
        self.payload[name] += sum(math.prod(tensor.shape) * tensor.element_size() for tensor in tensors)
        self._elsewhere |= {kind for kind in {tensor.device.type for tensor in tensors} if not on_tcp(kind, os.environ)}

    def __repr__(self) -> str:
        """One line an operation, then the wire."""
        lines = [
            f"{name}: {count} call{'s' * (count != 1)}, {self.payload[name]} bytes"
            for name, count in self.calls.items()
        ]
        wire = f"on the wire: {self.wire} bytes" if self.wire is not None else f"on the wire: unknown. {self.why}"
        return "\n".join([*(lines or ["no call"]), wire])


def meter() -> Meter:
    """Count what this rank says to the others while a block runs; called on a rank, as a context manager.

    Returns:
        A :class:`Meter`: ``calls`` and ``payload`` (bytes) by operation, ``messages`` sent, and ``wire``, the bytes
        that left for other ranks by the kernel's count. The sizes are exact; operations that a thread of the
        reader's own calls are not seen. An operation on a DTensor counts as the collectives that it needs: with
        gloo, from one shard to another is an ``all_gather_single``.

    Raises:
        WorldError: in the notebook, or in another process that is not a rank.

    Used from the chapter *point-to-point* on::

        with ranklab.meter() as meter:
            dist.all_reduce(tensor)
        print(meter.payload["all_reduce"], meter.wire)
    """
    return Meter()


def _watch(count):
    """Return a mode that tells of each operation of a process group."""
    from torch._ops import HigherOrderOperator
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Keeping torch.compile out of a mode imports it: a second and 70 MB per rank, at the first operation in the
            # block. Where nobody has imported it, there is nothing to keep out (_python_dispatch.py, 2.13).
            return "torch._dynamo" in sys.modules

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            # The mode is off while it handles a call: a DTensor has to make its collectives outside, as for
            # CommDebugMode (torch/distributed/tensor/debug/_comm_mode.py, 2.13).
            if isinstance(function, HigherOrderOperator):
                return function(*args, **(kwargs or {}))
            if _has_dtensor(types):
                return NotImplemented
            name = function.overloadpacket.__name__
            if function.namespace in GROUPS and name not in NO_COMMUNICATION:
                count(name, args)
            return function(*args, **(kwargs or {}))

    return Watch()


def _has_dtensor(types: Iterable[type]) -> bool:
    """Return whether one of the types is a DTensor's; where nobody has imported DTensor, none is."""
    dtensor = getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)
    return dtensor is not None and any(issubclass(each, dtensor) for each in types)


def _in_a_group() -> bool:
    """Say whether this process has joined a group, as one that mp.spawn starts does without RANK; imports nothing."""
    initialized = getattr(sys.modules.get("torch.distributed"), "is_initialized", None)
    return initialized is not None and initialized()


def _tensors(given: Any):
    if isinstance(given, (list, tuple)):
        for each in given:
            yield from _tensors(each)
    else:
        yield given


def _notebook_connections() -> frozenset[int]:
    """Return the connections between this rank and the notebook; none in a program that torchrun runs."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    watchdog = getattr(shell, "watchdog", None)
    return frozenset(watchdog.notebook_connections) if watchdog else frozenset()


def on_tcp(device: str, variables: Mapping[str, str]) -> bool:
    """Say whether tensors on a kind of device are known to travel through the kernel's TCP, which counts their bytes.

    Those on the CPU do. Others do where every rank counts as on a host of its own and may not use InfiniBand: where
    ranks share a device, and where each is alone on a host that ranklab has made.

    Args:
        device: torch's name of the kind.
        variables: the environment of the rank.
    """
    if device == "cpu":
        return True
    alone = SHARED in variables or variables.get("LOCAL_WORLD_SIZE") == "1"
    backend = next((backend for backend in BACKENDS if backend.device == device and backend.host), None)
    if backend is None or not alone or backend.host not in variables:
        return False
    return all(variables.get(name) == value for name, value in backend.apart.items())
