"""The faults: what a cell does, and what the report has to say about it, on each backend."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

CPUS, GPUS = "gloo", "nccl"


@dataclass(frozen=True)
class Fault:
    """One way in which a cell can go wrong.

    Attributes:
        name: for the table.
        cell: runs after SETUP and START; rank 1 is at fault.
        headline: how the report begins, a regular expression; ``{all}`` stands for all ranks, ``{others}`` for all but
            1, ``{wait}`` for what these do, and ``{but_0}`` for all but 0.
        says: a part of the report that a reader needs.
        dies: whether rank 1's process is lost, and with it that rank's variables.
        group: whether the cell needs a process group.
        options: of ``%%px``.
        sizes: the numbers of ranks it is tried on: three, and two and four where the words depend on it.
        moves: the ranks are at work when the deadline comes, so where they are is a matter of chance.
        backends: the backends on which it is a fault.
        instead: what is different on a backend, by its name: fields of this class.
    """

    name: str
    cell: str
    headline: str
    says: str
    dies: bool = False
    group: bool = True
    moves: bool = False
    options: str = ""
    sizes: tuple[int, ...] = (3,)
    backends: tuple[str, ...] = (CPUS, GPUS)
    instead: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def on(self, backend):
        """Return the fault as it is on a backend: there the cell makes its tensors and its group."""
        changed = replace(self, **self.instead.get(backend, {}))
        return replace(changed, cell=changed.cell.replace(INIT, WAYS[backend].init))


@dataclass(frozen=True)
class Way:
    """How cells are written for one backend.

    Attributes:
        setup: runs before all others; tensors are made on the device of the backend from there on.
        init: makes the process group.
    """

    setup: str
    init: str

    @property
    def start(self):
        """A cell that makes the group where there is none."""
        return START.replace(INIT, self.init)

    @property
    def right(self):
        """A cell that needs all ranks."""
        return f"{self.setup}\n{self.start}\ntotal = torch.ones(1)\ndist.all_reduce(total)\nprint(int(total))"


ANY = (2, 3, 4)
SETUP = "import os, signal, torch\nimport torch.distributed as dist\nrank = int(os.environ['RANK'])"
INIT = "dist.init_process_group()"
START = f"if not dist.is_initialized():\n    {INIT}"
WAYS = {
    CPUS: Way(SETUP, INIT),
    # The idiom of the chapters; with device_id the ranks connect in this call, and not in their first collective.
    GPUS: Way(
        f"{SETUP}\nimport ranklab\ndevice = ranklab.device()\ntorch.cuda.set_device(device)\n"
        "torch.set_default_device(device)",
        "dist.init_process_group(dist.get_default_backend_for_device(device), device_id=device)",
    ),
}
RIGHT = WAYS[CPUS].right
REDUCE = "dist.all_reduce(torch.ones(4))"
FAULTS = [
    Fault(
        "exception",
        f"if rank == 1:\n    raise ValueError('no data')\n{REDUCE}",
        "rank 1 raised ValueError: no data",
        "waits in all_reduce, collective 1, shape (4,) of float32",
    ),
    Fault(
        "exception that cannot be printed",
        "class Odd(Exception):\n    def __str__(self):\n        raise KeyError('x')\n"
        f"if rank == 1:\n    raise Odd()\n{REDUCE}",
        "rank 1 raised Odd: <its message cannot be printed",
        "line 5:  raise Odd()",
    ),
    Fault(
        "SIGKILL",
        f"if rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\n{REDUCE}",
        r"rank 1 was killed by SIGKILL in the statement that begins in line 1:  if rank == 1:",
        "waited for rank 1, which died",
        dies=True,
    ),
    Fault(
        "SIGABRT",
        f"if rank == 1:\n    os.abort()\n{REDUCE}",
        r"rank 1 was killed by SIGABRT in the statement that begins in line 1:  if rank == 1:",
        "waited for rank 1, which died",
        dies=True,
    ),
    Fault(
        "os._exit",
        f"if rank == 1:\n    os._exit(3)\n{REDUCE}",
        r"rank 1 ended with exit status 3 in the statement that begins in line 1:  if rank == 1:",
        "waited for rank 1, which died",
        dies=True,
    ),
    Fault(
        "SIGSTOP",
        f"if rank == 1:\n    os.kill(os.getpid(), signal.SIGSTOP)\n{REDUCE}",
        r"After 1 s: the process of rank 1 was stopped \(SIGSTOP\), and {others} waited",
        "it was continued",
        sizes=ANY,
    ),
    Fault(
        "allocation refused",
        "if rank == 1:\n    torch.empty(1 << 50)\n" + REDUCE,
        "rank 1 raised RuntimeError",
        "use a smaller tensor",
        instead={
            GPUS: {
                "name": "GPU out of memory",
                "headline": "rank 1 raised OutOfMemoryError",
                "says": "use a smaller batch",
            }
        },
    ),
    Fault(
        "endless loop",
        f"while rank == 1:\n    pass\n{REDUCE}",
        r"After 1 s: {others} {wait} in all_reduce for rank 1, still in line \d",
        "rank 1 may be in an endless loop",
        sizes=ANY,
    ),
    Fault(
        "endless loop on all ranks",
        "while True:\n    pass",
        r"After 1 s: {all} are still at work, and wait for no other rank that torch knows of",
        "--timeout 300",
        sizes=ANY,
    ),
    Fault(
        "skipped collective",
        f"if rank != 1:\n    {REDUCE}",
        r"After 1 s: {others} {wait} in all_reduce for rank 1, which finished the cell without it",
        "never called all_reduce",
        sizes=ANY,
    ),
    Fault(
        "wrong shape",
        "x = torch.ones(7 if rank == 1 else 2)\nfor _ in range(2):\n    dist.all_reduce(x)",
        r".*(disagree|killed by SIGABRT)",
        "shape",
    ),
    Fault(
        "wrong order",
        "x = torch.ones(4)\nif rank == 1:\n    dist.broadcast(x, 0)\n    dist.all_reduce(x)\nelse:\n"
        "    dist.all_reduce(x)\n    dist.broadcast(x, 0)",
        r"After 1 s: the ranks disagree about collective 1: all_reduce on {others}, broadcast on rank 1",
        "in another order",
        sizes=ANY,
    ),
    Fault(
        "wrong operation",
        "x = torch.ones(4)\nif rank == 1:\n    dist.barrier()\nelse:\n    dist.all_reduce(x)",
        r"After 1 s: the ranks disagree about collective 1: all_reduce on {others}, barrier on rank 1",
        "compare the lines above",
        sizes=ANY,
    ),
    Fault(
        "mutual receive",
        "x = torch.ones(4)\nif rank < 2:\n    dist.recv(x, 1 - rank)",
        "After 1 s: ranks 0, 1 wait for each other: rank 0 receives from rank 1, rank 1 receives from rank 0",
        "nobody sends",
    ),
    Fault(
        "receive without a send",
        "x = torch.ones(4)\nif rank == 0:\n    dist.recv(x, 1)",
        "After 1 s: rank 0 receives from rank 1, which sends nothing and has finished the cell",
        "write the matching call on rank 1",
    ),
    Fault(
        "rank-0-only barrier",
        "if rank == 0:\n    dist.barrier()",
        r"After 1 s: rank 0 waits in barrier for {but_0}, which finished the cell without it",
        "a condition such as `if rank == 0:` left some out",
        sizes=ANY,
    ),
    Fault(
        "rank missing in init_process_group",
        "if rank != 1:\n    dist.init_process_group()",
        r"After 1 s: {others} {wait} in init_process_group for rank 1, which finished the cell without it",
        "call it on every rank",
        group=False,
        sizes=ANY,
    ),
    Fault(
        "init_process_group twice",
        "dist.init_process_group()",
        "{all} raised ValueError: trying to initialize the default process group twice",
        "dist.destroy_process_group()",
        sizes=ANY,
    ),
    Fault(
        "sys.exit",
        f"import sys\nif rank == 1:\n    sys.exit(3)\n{REDUCE}",
        r"rank 1 called sys.exit\(3\): a program would end here",
        "waits in all_reduce",
    ),
    Fault(
        "exit()",
        f"if rank == 1:\n    exit()\n{REDUCE}",
        r"rank 1 called sys.exit\(0\)",
        "waits in all_reduce",
    ),
    Fault(
        "send without a receive, and a loop",
        "x = torch.ones(1 << 20)\nif rank == 0:\n    dist.send(x, 1)\nwhile rank == 1:\n    pass",
        "After 1 s: rank 0 sends to rank 1, which receives nothing",
        "every send needs a recv",
    ),
    Fault(
        "a rank deaf to interrupts",
        f"if rank == 1:\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile rank == 1:\n    pass\n{REDUCE}",
        r"After 1 s: {others} {wait} in all_reduce for rank 1, still in line \d",
        "it did not come back, and its process was ended",
        dies=True,
        sizes=ANY,
    ),
    Fault(
        "collectives without end",
        "x = torch.ones(1000)\nwhile True:\n    dist.all_reduce(x)",
        r"After 1 s: {all} work on: messages come and go",
        "--timeout 300",
        moves=True,
        sizes=ANY,
    ),
    Fault(
        "messages without end",
        "x = torch.ones(1000)\nwhile rank < 2:\n"
        "    dist.send(x, 1) if rank == 0 else dist.recv(x, 0)\n    dist.recv(x, 1) if rank == 0 else dist.send(x, 0)",
        r"After 1 s: ranks 0, 1 work on: messages come and go",
        "--timeout 300",
        moves=True,
    ),
    Fault(
        "sent to one rank",
        "dist.barrier()",
        r"After 1 s: rank 0 waits in barrier for {but_0}, to which this cell was not sent",
        "send the cell to all ranks",
        options="--ranks 0",
        sizes=ANY,
    ),
    Fault(
        "init_process_group sent to one rank",
        "dist.init_process_group()",
        r"After 1 s: rank 0 waits in init_process_group for {but_0}, to which this cell was not sent",
        "send the cell to all ranks",
        group=False,
        options="--ranks 0",
        sizes=ANY,
    ),
    Fault(
        "receive from a rank that has no cell",
        "dist.recv(torch.ones(4), 1)",
        "After 1 s: rank 0 receives from rank 1, to which this cell was not sent",
        "send the cell to all ranks",
        options="--ranks 0",
    ),
    Fault(
        "one step fewer",
        "for step in range(3 if rank == 1 else 4):\n    dist.all_reduce(torch.ones(4))",
        r"After 1 s: {others} {wait} in all_reduce for rank 1, which finished the cell without it",
        "finished the cell after 3 collectives",
        sizes=ANY,
    ),
    Fault(
        "two groups in crossed order",
        "a, b = dist.new_group(), dist.new_group()\n"
        "for group in (b, a) if rank == 1 else (a, b):\n    dist.all_reduce(torch.ones(4), group=group)",
        r"After 1 s: {others} {wait} in all_reduce for rank 1, still in line 3",
        "the ranks use two groups in another order",
        sizes=ANY,
    ),
    Fault(
        "another tag",
        "x = torch.ones(1 << 20)\nif rank == 0:\n    dist.send(x, 1, tag=4)\nif rank == 1:\n    dist.recv(x, 0, tag=5)",
        "After 1 s: ranks 0, 1 wait for each other: rank 0 sends to rank 1, rank 1 receives from rank 0",
        "another tag",
        backends=(CPUS,),  # the other one has no tags: the two meet
    ),
    Fault(
        "a long call that Python cannot interrupt",
        f"if rank == 1:\n    sum(range(10**11))\n{REDUCE}",
        r"After 1 s: rank 1 did not answer, and {others} waited",
        "it did not come back, and its process was ended",
        dies=True,
        sizes=ANY,
    ),
    Fault(
        "a worker of a DataLoader that is blocked",
        "import threading\nfrom torch.utils.data import DataLoader\n"
        "class Data:\n    def __len__(self):\n        return 2\n"
        "    def __getitem__(self, index):\n        threading.Event().wait()\n"
        "data = DataLoader(Data(), num_workers=1, multiprocessing_context='fork')\n"
        f"if rank == 1:\n    next(iter(data))\n{REDUCE}",
        "After 1 s: ranks 0, 2 wait in all_reduce for rank 1, still in line 10",
        "rank 1 waits for something that is no rank, in torch.utils.data",
        backends=(CPUS,),
    ),
    Fault(
        "another root",
        "root, size = int(rank == 1), dist.get_world_size()\n"
        "parts = [torch.empty(4) for _ in range(size)] if rank == root else None\n"
        "dist.gather(torch.ones(4), parts, dst=root)",
        "After 1 s: ranks 0, 1 wait in gather, which all ranks of its group have called",
        "may name different roots in dst=",
        backends=(CPUS,),
    ),
    Fault(
        "a send that was started and has no partner",
        "if rank == 1:\n    dist.isend(torch.ones(4), 0).wait()",
        "After 1 s: rank 1 waits for what was started before, a message or a collective",
        "has no partner",
        backends=(CPUS,),
    ),
    Fault(
        "an innocent line after a skipped collective",
        "x = torch.ones(4)\nif rank != 1:\n    dist.all_reduce(x)\nprint(x)",
        r"After 1 s: {others} {wait} in all_reduce for rank 1, which finished the cell without it",
        "called in line 3:  dist.all_reduce(x)",
        sizes=ANY,
        backends=(GPUS,),
    ),
    Fault(
        "first collective skipped, with ranks that connect in it",
        "dist.destroy_process_group()\ndist.init_process_group('nccl')\n" + f"if rank != 1:\n    {REDUCE}",
        r"After 1 s: {others} {wait} in all_reduce for rank 1, which finished the cell without it",
        "never called all_reduce",
        sizes=ANY,
        backends=(GPUS,),
    ),
    Fault(
        "send and send, without a batch",
        "x = torch.ones(4)\nif rank < 2:\n    dist.send(x, 1 - rank)\n    dist.recv(x, 1 - rank)",
        r"ranks? 0.* raised DistBackendError",
        "dist.batch_isend_irecv",
        backends=(GPUS,),
    ),
    Fault(
        "device-side assert",
        f"if rank == 1:\n    x = torch.ones(4)[torch.tensor([7])]\n{REDUCE}",
        r"rank 1 (was killed by SIGABRT|raised AcceleratorError)",
        "an assertion failed in a kernel",
        dies=True,
        backends=(GPUS,),
    ),
    Fault(
        "a kernel that cannot be stopped",
        "if rank == 1:\n    torch.cuda._sleep(10**12)",
        "After 1 s: rank 1 has run all lines of the cell, and its work on the GPU has not ended",
        "it did not come back, and its process was ended",
        dies=True,
        backends=(GPUS,),
    ),
]
