"""The backends that ranks talk over: all that ranklab knows of each, and the one module that names them.

A new backend is one more record in :data:`BACKENDS`. Where it also needs another kind of device, :mod:`.gpus` counts
them and :mod:`ranklab.engines.devices` chooses. Standard library only: read in the notebook and in every rank.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

BACKEND = "RANKLAB_BACKEND"  # tells a rank the backend that ranklab has chosen
SHARED = "RANKLAB_SHARED"  # tells it that several ranks have to share each device
PEER_PORT = re.compile(r"(\[[0-9a-fA-F.:]+\]):\d+")
# torch's log lines with the stack of C++ functions behind them: what its compiled code says of a wait that was ended.
CUT_WARNING = re.compile(
    r"^(?:\[rank\d+\]:)?\[[WE]\d{4} [^\n]*\n(?:Exception raised[^\n]*\n)?(?:(?:frame #|<omitting)[^\n]*\n)*\n?",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Hint:
    """What an error means.

    Attributes:
        part: stands in the error's message.
        cause: the likely cause, a clause that ends with a full stop.
        mend: what to do about it, the same.
    """

    part: str
    cause: str
    mend: str


@dataclass(frozen=True)
class Backend:
    """What ranklab knows of one backend.

    Attributes:
        name: as ``init_process_group`` takes it and the flight recorder writes it before an operation's name.
        title: as a sentence names it.
        device: the type of device that its ranks compute on.
        hides: variables that hide all other devices from a rank that ranklab gives this backend.
        defaults: variables that every rank gets where the reader has not set them.
        interface: the variable that names the network interface it shall use.
        host: the variable that says on which host a rank is; ranks on different hosts talk over the network, and may
            share a device. Empty where it needs no such thing.
        shares: further variables of ranks that share a device.
        aborts: whether a wait is ended by aborting the group; else by cutting its connections.
        recorder: the function of ``torch._C._distributed_c10d`` that dumps its flight recorder as JSON.
        timeout: torch's own default, seconds.
        lost: what it says in a rank whose partner has gone.
        overdue: what it says in a rank that has waited for the group's timeout.
        too_much: what it writes before it ends a rank that another one sent more than there was room for; its two
            groups are the bytes that came and those that there was room for.
        source: paths in its messages, which differ between machines.
        chatter: lines that it prints in every rank and that tell the reader nothing.
        hints: what its errors mean.
        try_next: what to try where the doctor's all_reduce fails.
    """

    name: str
    title: str
    device: str = "cpu"
    hides: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    interface: str = ""
    host: str = ""
    shares: Mapping[str, str] = field(default_factory=dict)
    aborts: bool = False
    recorder: str = "_dump_fr_trace_json"
    timeout: float = 1800.0
    lost: str = ""
    overdue: str = ""
    too_much: str = ""
    source: str = ""
    chatter: str = ""
    hints: tuple[Hint, ...] = ()
    try_next: str = ""


ON_CPUS = Backend(
    name="gloo",
    title="gloo",
    # A group without a named backend takes the one for GPUs where torch sees a GPU (BackendConfig in torch/distributed/
    # distributed_c10d.py, 2.13).
    hides={"CUDA_VISIBLE_DEVICES": ""},
    interface="GLOO_SOCKET_IFNAME",
    # gloo/transport/tcp/pair.cc
    lost="Connection closed by peer|Connection reset by peer|Broken pipe|Read error|Write error",
    # It forgets a send whose connection breaks while it is answered, and the rank waits on (UnboundBuffer::waitSend).
    overdue=r"Timed out waiting \d+ms",
    # It ends the process where another rank sends more than it has room for (pair.cc as well).
    too_much=r"op\.preamble\.length <= op\.nbytes\. (\d+) vs (\d+)",
    source=r"\[\S*/gloo/\S*\] ?",
    # For each new group, with torch 2.8; not with 2.13.
    chatter=r"\[Gloo\] Rank \d+ is connected to \d+ peer ranks\. Expected number of connected peer ranks is : \d+\n",
    try_next="Is a firewall on loopback?",
)
ON_GPUS = Backend(
    name="nccl",
    title="NCCL",
    device="cuda",
    # torch ends a process whose collective failed, and aborts groups by itself, unless this is "0": the note at
    # _abort_process_group in torch/distributed/distributed_c10d.py (2.13).
    defaults={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"},
    interface="NCCL_SOCKET_IFNAME",
    # It takes no two ranks of one host on one GPU, and believes what it is told of the host.
    host="NCCL_HOSTID",
    shares={"NCCL_IB_DISABLE": "1"},
    aborts=True,
    recorder="_dump_nccl_trace_json",  # a recorder of its own type, which notes CUDA events
    timeout=600.0,
    lost="ncclRemoteError|remote process exit|NCCL communicator was aborted",  # c10d/NCCLUtils.cpp
    overdue="Watchdog caught collective operation timeout",
    hints=(
        Hint(
            "doesn't have NCCL built in",
            "this torch was built without CUDA, and NCCL needs a GPU for every rank.",
            'leave the backend out, dist.init_process_group(), or name the one for CPUs: "gloo".',
        ),
        Hint(
            "ProcessGroupNCCL is only supported with GPUs",
            "this rank sees no GPU, and NCCL needs one for every rank.",
            'leave the backend out, dist.init_process_group(), or name the one for CPUs: "gloo".',
        ),
    ),
    try_next="Try `NCCL_P2P_DISABLE=1`, then `NCCL_DEBUG=INFO`.",
)
BACKENDS = (ON_CPUS, ON_GPUS)


def named(name: str) -> Backend:
    """Return the record of a backend; of one that is not ours a record that knows its name."""
    return next((backend for backend in BACKENDS if backend.name == name), Backend(name, name or "torch"))


def of_group(config: str) -> list[Backend]:
    """Return the backends of a process group.

    Args:
        config: torch's words for them, ``cpu:gloo,cuda:nccl``.
    """
    names = {part.rpartition(":")[2] for part in config.split(",")}
    return [backend for backend in BACKENDS if backend.name in names]


def environment(name: str) -> dict[str, str]:
    """Return the variables that tell a rank its backend, and hide from it the devices that it shall not use."""
    return {BACKEND: name, **named(name).hides}


def sharing(name: str, rank: int) -> dict[str, str]:
    """Return the variables by which a rank shares its device with others: it counts as on a host of its own."""
    return {SHARED: "1", **on_host(name, f"rank{rank}"), **named(name).shares}


def on_host(name: str, host: str) -> dict[str, str]:
    """Return the variable that tells a backend on which host a rank is to count, where it takes one."""
    return {named(name).host: host} if named(name).host else {}


def defaults() -> dict[str, str]:
    """Return what every rank gets where the reader has set nothing: a cell may use a backend that ranks do not have."""
    ours = {name: value for backend in BACKENDS for name, value in backend.defaults.items()}
    return {name: os.environ.get(name, value) for name, value in ours.items()}


def interfaces(name: str) -> dict[str, str]:
    """Return the variables that have every backend use one network interface."""
    return {backend.interface: name for backend in BACKENDS if backend.interface}


def lost_partner(error: str, overdue: bool = False) -> bool:
    """Say whether a rank's error only means that another rank has gone.

    Args:
        error: its message.
        overdue: count a rank that has waited in vain for the whole timeout, too.
    """
    patterns = [backend.lost for backend in BACKENDS]
    patterns += [backend.overdue for backend in BACKENDS] if overdue else []
    return any(pattern and re.search(pattern, error) for pattern in patterns)


def sent_too_much(words: str) -> tuple[Backend, int, int] | None:
    """Return who ended a rank because another one sent too much: the backend, the bytes sent, and the room for them.

    Args:
        words: what the rank wrote before it died.
    """
    for backend in BACKENDS:
        found = backend.too_much and re.search(backend.too_much, words)
        if found:
            return backend, int(found[1]), int(found[2])
    return None


def anonymous(message: str) -> str:
    """Take out of a message what differs on every run or machine: paths of a backend's source, the port of a peer."""
    for backend in BACKENDS:
        if backend.source:
            message = re.sub(backend.source, f"[{backend.title}] ", message)
    return PEER_PORT.sub(r"\1", message)


def quiet(words: str) -> str:
    """Take out of a rank's stderr what compiled code writes there when a wait is ended."""
    return CUT_WARNING.sub("", words)


def without_chatter(words: str) -> str:
    """Take out of what compiled code has printed the lines that a backend writes in every rank."""
    for backend in BACKENDS:
        if backend.chatter:
            words = re.sub(f"(?m)^{backend.chatter}", "", words)
    return words
