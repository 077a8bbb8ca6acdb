"""What the driver asks of an idle rank. Runs inside a rank."""

from __future__ import annotations

import os
import pickle
import socket
import sys
from collections.abc import Callable
from typing import Any

from ..errors import WorldError
from ..system.gpus import visible_gpu_names
from ..system.ports import reserve_port
from .meeting import count_anew, open_store
from .on_cpu import on_cpu
from .queued import forget

_port: socket.socket | None = None  # held until another is asked for: other programs do not get it


def greet() -> int:
    """Answer the first question of the notebook: which rank is this?

    By now all connections to the notebook stand, so the watchdog learns which ones never to cut.
    """
    from IPython import get_ipython

    shell = get_ipython()
    shell.watchdog.settle()
    open_store()
    return int(os.environ["RANK"])


def where_am_i() -> tuple[str, list[str]]:
    """Return the name of this rank's computer, and the GPUs that it sees."""
    return socket.gethostname(), visible_gpu_names()


def free_port(towards: str) -> tuple[str, int]:
    """Return an address of this computer and a port on it that stays free for rank 0, which is asked.

    Args:
        towards: an address that the other ranks can reach as well; "" where all ranks are on this computer.
    """
    global _port
    host = "127.0.0.1"
    if towards:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((towards, 9))  # sends nothing; the system chooses the interface
            host = probe.getsockname()[0]
    before, _port = _port, reserve_port(host)
    if before is not None:
        before.close()
    return host, _port.getsockname()[1]


def take_place(environment: dict[str, str], defaults: dict[str, str]) -> None:
    """Become a rank that another launcher has started.

    Args:
        environment: the variables that torchrun would have set.
        defaults: set as well where this computer has not set them.
    """
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    os.environ.update(environment)


def leave_group(master_port: int) -> bool:
    """Destroy this rank's process group, if it has one, so that ``dist.init_process_group()`` works again.

    Args:
        master_port: where the next group meets.

    Returns:
        Whether there was a group to leave.
    """
    os.environ["MASTER_PORT"] = str(master_port)
    forget()
    dist = sys.modules.get("torch.distributed")
    member = False
    if dist is not None and dist.is_available():
        if member := dist.is_initialized():
            dist.destroy_process_group()
        else:
            count_anew()
    open_store()
    return member


def read_variable(name: str) -> tuple[bool, bytes]:
    """Return whether the reader's variable exists on this rank, and its value, packed."""
    from IPython import get_ipython

    variables = get_ipython().user_ns
    return name in variables, pack(variables.get(name))


def pack(value: Any) -> bytes:
    """Return a value, with its tensors on the CPU, as bytes: the notebook opens them where it can tell an error."""
    from ipyparallel.serialize import serialize_object

    # In a tuple, because of a dict that stands alone ipyparallel sorts the keys.
    return pickle.dumps([bytes(part) for part in serialize_object((on_cpu(value),))])


def unpack(packed: bytes) -> Any:
    """Return, in the notebook, the value that a rank has packed.

    Raises:
        WorldError: it is of a class that only the ranks know.
    """
    from ipyparallel.serialize import deserialize_object

    try:
        return deserialize_object(pickle.loads(packed))[0][0]
    except (AttributeError, ImportError) as error:
        raise WorldError(
            f"The ranks' answer is of a class that this notebook does not know ({str(error).partition(' on ')[0]}). "
            "Ask for its numbers, or run the cell that defines it with %%px --local, which defines it here, too."
        ) from None


def answer(function: Callable, *arguments: Any) -> bytes:
    """Call a function of a grader; return what it returned, packed.

    Args:
        function: called with the arguments.
        arguments: see there.
    """
    return pack(function(*arguments))
