"""The backends that ranks talk over: all that ranklab knows of each, and the one module that names them.

A new backend is one more record in :data:`BACKENDS`; another kind of device is counted in :mod:`.gpus`. stdlib only.
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
# What torch's store says of each connection where no name server can be asked: it goes on without one (socket.cpp).
NAMELESS = r"\[W[\d .:]+ socket\.cpp:\d+\] \[c10d\] The hostname of the client socket cannot be retrieved\. err=-\d+\n"


@dataclass(frozen=True)
class Hint:
    """What an error means.

    Attributes:
        part: stands in the error's message.
        cause: the likely cause, a clause that ends with a full stop.
        fix: what to do about it, the same.
    """

    part: str
    cause: str
    fix: str


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
        apart: further variables of ranks that count as on hosts of their own though they are on one machine: without
            them they might find a way past the network that they were given.
        aborts: whether a wait is ended by aborting the group; else by cutting its connections.
        recorder: the function of ``torch._C._distributed_c10d`` that dumps its flight recorder as JSON.
        stacks: the one that dumps it with the stack of each call. Empty where a call comes back when it is done: the
            rank's own stack tells then in which it waits.
        timeout: torch's own default, seconds.
        lost: what it says in a rank whose partner has gone.
        overdue: what it says in a rank that has waited for the group's timeout.
        operations: its recorder's names of operations that torch.distributed calls otherwise.
        unequal: what it does with tensors of one call that differ, the end of a sentence.
        log: its own lines in what a rank writes, besides those of torch's log; a pattern for their beginning.
        folds: whether torch's log is taken out of what a rank wrote, and folded away: the log of a backend with threads
            of its own comes at any moment, in a cell that has nothing to do with it.
        deaths: what it means when a rank has written that before it died.
        too_much: what it writes before it ends a rank that another one sent more than there was room for; its two
            groups are the bytes that came and those that there was room for.
        source: paths in its messages, which differ between machines.
        chatter: lines that it prints in every rank and that tell the reader nothing.
        hints: what its errors mean.
        version: what of torch tells its version, the name of a function; "" where it has none of its own.
        try_next: what to try where the doctor's all_reduce fails.
        try_sharing: the same, where the ranks of it share a device.
    """

    name: str
    title: str
    device: str = "cpu"
    hides: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    interface: str = ""
    host: str = ""
    apart: Mapping[str, str] = field(default_factory=dict)
    aborts: bool = False
    recorder: str = "_dump_fr_trace_json"
    stacks: str = ""
    timeout: float = 1800.0
    lost: str = ""
    overdue: str = ""
    operations: Mapping[str, str] = field(default_factory=dict)
    unequal: str = "does not compare them"
    log: str = ""
    folds: bool = False
    deaths: tuple[Hint, ...] = ()
    too_much: str = ""
    source: str = ""
    chatter: str = ""
    hints: tuple[Hint, ...] = ()
    version: str = ""
    try_next: str = ""
    try_sharing: str = ""


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
    overdue=r"Timed out waiting \d+ms|pair closure",
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
    apart={"NCCL_IB_DISABLE": "1"},
    aborts=True,
    recorder="_dump_nccl_trace_json",  # a recorder of its own type, which notes CUDA events
    stacks="_dump_nccl_trace",
    operations={"all_reduce_barrier": "barrier"},
    timeout=600.0,
    lost="ncclRemoteError|remote process exit|NCCL communicator was aborted",  # c10d/NCCLUtils.cpp
    overdue="Watchdog caught collective operation timeout",
    unequal="does not compare them: a rank can end such a call without an error, with wrong numbers in its tensor",
    # "host:1234:1250 [0] transport.cc:158 NCCL WARN …", in later releases behind a time; NCCL_DEBUG asks for more.
    log=r"(?:\[[\d\- :]+\] )?\S+:\d+:\d+ \[\d+\] .*NCCL .*|NCCL version |nccl[A-Z]\w*: ",
    folds=True,
    deaths=(
        Hint(
            "device-side assert",
            "an assertion failed in a kernel on its GPU, most often because an index or a label is out of range, and "
            "NCCL's watchdog ended the process. A kernel runs after its line: an earlier one may have begun it.",
            "run these lines on the CPU, where the error names the index and stands at its line.",
        ),
        Hint(
            "Watchdog caught collective operation timeout",
            "it waited in a collective for longer than the timeout of its group; NCCL's watchdog ended the process.",
            "see which rank did not call that collective; dist.init_process_group(timeout=…) sets the timeout.",
        ),
    ),
    hints=(
        Hint(
            "connecting to address with family 0",
            "two ranks begin with the same of send and recv. Without a batch NCCL connects two ranks at their first "
            "message, and then one has to send and the other to receive.",
            "let one of them send first and the other receive first, or start both with dist.batch_isend_irecv.",
        ),
        Hint(
            "Duplicate GPU detected",
            "two ranks chose the same GPU, and NCCL takes no two ranks of one host on one GPU.",
            "call torch.cuda.set_device(ranklab.device()) first; with fewer GPUs than ranks, let them share: "
            'ranklab.start(4, backend="nccl").',
        ),
        Hint(
            "No backend type associated with device type cpu",
            "the tensor is on the CPU, and this group has a backend for GPUs only.",
            "make the tensor with device=ranklab.device().",
        ),
        Hint(
            "device-side assert triggered",
            "an assertion failed in a kernel on the GPU, most often because an index or a label is out of range. A "
            "kernel runs after its line, so an earlier line may have begun it.",
            "run these lines on the CPU, where the error names the index and stands at its line. CUDA of this rank is "
            "of no use any more: world.restart().",
        ),
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
    version="cuda.nccl.version",
    try_next="Try `NCCL_P2P_DISABLE=1`, then `NCCL_DEBUG=INFO`.",
    try_sharing='Is the GPU\'s memory free, a gigabyte for two ranks? Then try `NCCL_DEBUG=INFO`; backend="gloo" keeps '
    "ranks on the CPU.",
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
    return {SHARED: "1", **on_host(name, f"rank{rank}")}


def on_host(name: str, host: str) -> dict[str, str]:
    """Return the variables of a rank that is to count as on a host of this name, for a backend that looks at hosts.

    The hosts are all on one machine, and what joins them is the network interface that the rank is told.
    """
    backend = named(name)
    return {backend.host: host, **backend.apart} if backend.host else {}


def defaults() -> dict[str, str]:
    """Return what every rank gets where the reader has set nothing: a cell may use a backend that ranks do not have."""
    ours = {name: value for backend in BACKENDS for name, value in backend.defaults.items()}
    return {name: os.environ.get(name, value) for name, value in ours.items()}


def interfaces(name: str) -> dict[str, str]:
    """Return the variables that have every backend use one network interface."""
    return {backend.interface: name for backend in BACKENDS if backend.interface}


def interface(name: str, device: str) -> dict[str, str]:
    """Return the variable that has one backend use a network interface.

    Args:
        name: of the backend.
        device: of the network, ``eth0``.
    """
    return {named(name).interface: device} if named(name).interface else {}


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
    """Take out of what compiled code has printed the lines that it writes in every rank and that tell nothing."""
    lines = "|".join([NAMELESS, *(backend.chatter for backend in BACKENDS if backend.chatter)])
    return re.sub(f"(?m)^(?:{lines})", "", words)
