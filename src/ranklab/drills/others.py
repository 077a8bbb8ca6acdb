"""Faults of messages between two ranks, of groups, of Python itself, and those that come from outside."""

from __future__ import annotations

import signal
from typing import Any

from .fault import ENDED, STOPPED, Fault, Situation, pair


def _partner(rank: int, at: Situation) -> dict[str, Any]:
    return {"partner": at.by_step(rank, (rank + 2) % at.size, pair(rank))}


def _tag(rank: int, at: Situation) -> dict[str, Any]:
    return {"version": at.by_step(rank, 2, 1)}


def _lists(rank: int, at: Situation) -> list[list[int]]:
    return at.by_step(rank, [at.other], [])


def _averages(rank: int, at: Situation) -> dict[str, Any]:
    return {"averages": at.by_step(rank, ["all", "pair"], ["pair", "all"])}


def _teacher(rank: int, at: Situation) -> dict[str, Any]:
    return {"teachers": sorted([at.guilty, at.other]) if rank == at.guilty else []}


def _files(rank: int, at: Situation) -> dict[str, Any]:
    return {"files": at.by_step(rank, f"more-{rank}.json", f"part-{rank}.json")}


def _pages(rank: int, at: Situation) -> dict[str, Any]:
    return {"pages": at.by_step(rank, 100_000, 0)}


def _warned(rank: int, at: Situation) -> dict[str, Any]:
    return {"warnings": [at.step] if rank == at.guilty else []}


# Any of the four may be the line in which the guilty rank hangs: Program.blamed() keeps that one and drops the others.
EXCHANGE = """\
mine, theirs = loss.detach().reshape(1), torch.zeros(1)
if rank % 2 == 0:
    dist.send(mine, {to}{tag})  #?{blame}
    dist.recv(theirs, {to}{tag})  #?{blame}
else:
    dist.recv(theirs, {to}{tag})  #?{blame}
    dist.send(mine, {to}{tag})  #?{blame}"""

FAULTS = (
    Fault(
        "send without receive",
        "messages",
        "A send without a receive leaves its rank in send, and no other rank is in recv.",
        "In step {step} the file of rank {rank} asked for a copy that nobody expected: by line {line} it sent what no "
        "rank receives.",
        {"after": 'for other in part["copies"][step]:  #!\n    dist.send(loss.detach().reshape(1), other)  #?!'},
        "own",
        lambda rank, at: {"copies": _lists(rank, at)},
        decoy=True,
    ),
    Fault(
        "wrong peer",
        "messages",
        "With a wrong peer, ranks are in send and in recv, and the logs show one that names a partner which does not "
        "name it.",
        "In step {step} the file of rank {rank} names a partner that has another partner. Line {line} follows the "
        "file, and the two never meet.",
        {
            "after": 'partner = part["partner"][step]  #!\n'
            'print(f"step {step}: exchange with rank {partner}")\n' + EXCHANGE.format(to="partner", tag="", blame="!"),
        },
        "own",
        _partner,
        paired=True,
    ),
    Fault(
        "wrong tag",
        "messages",
        "With a wrong tag, a rank is in send and its partner in recv, each names the other, and the logs show "
        "different tags.",
        "In step {step} the file of rank {rank} holds another version, which line {line} uses as the tag: a message of "
        "one tag is never received under the other.",
        {
            "after": 'tag, partner = part["version"][step], rank ^ 1  #!\n'
            'print(f"step {step}: exchange with rank {partner}, tag {tag}")\n'
            + EXCHANGE.format(to="partner", tag=", tag=tag", blame="!"),
        },
        "own",
        _tag,
        paired=True,
    ),
    Fault(
        "groups crossed",
        "groups",
        "With groups crossed, two ranks that share two groups each wait in another one of them.",
        "In step {step} the file of rank {rank} lists the groups in another order, and line {line} follows the file: "
        "rank {rank} waited in the group of all ranks while its partner waited in their pair.",
        {
            "setup": "pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]",
            "after": 'for name in part["averages"][step]:  #!\n'
            '    group = pairs[rank // 2] if name == "pair" else None\n'
            "    number = loss.detach().clone()\n"
            "    dist.all_reduce(number, group=group)  #?",
        },
        "own",
        _averages,
        paired=True,
    ),
    Fault(
        "group made by some ranks only",
        "groups",
        "A group that only some ranks make leaves them in new_group, which all ranks have to call.",
        "Only the file of rank {rank} names teachers, so by line {line} rank {rank} alone called new_group; every rank "
        "has to call it, members or not.",
        {"setup": 'if part["teachers"]:  #!\n    teachers = dist.new_group(part["teachers"])  #?!'},
        "own",
        _teacher,
        decoy=True,
    ),
    Fault(
        "lock taken twice",
        "python",
        "A lock taken twice shows a stack that ends in a with outside of torch, above another with of the same lock.",
        "In step {step} rank {rank} warned: in line {line} warn waits for the lock that its caller holds already, for "
        "ever.",
        {
            "imports": "import threading",
            "setup": "lock = threading.Lock()\n\n\ndef warn(text):\n    with lock:  #?!\n        print(text)",
            "after": 'with lock:  #!\n    if step in part["warnings"]:\n        warn("rows look odd")  #!',
        },
        "own",
        _warned,
        decoy=True,
    ),
    Fault(
        "waits for a file",
        "waits",
        "A rank that waits for a file sleeps in a loop that asks whether the file is there.",
        "In step {step} the file that rank {rank} wanted did not exist, and line {line} would have waited for it for "
        "ever.",
        {
            "imports": "import os\nimport time",
            "before": 'while not os.path.exists(part["files"][step]):  #!\n    time.sleep(60)  #?!',
        },
        "own",
        _files,
        decoy=True,
    ),
    Fault(
        "slow rank",
        "waits",
        "A slow rank is not stuck: its stack is in work that will end, and the work is counted in the program.",
        "In step {step} rank {rank} had 100 000 pages to read, one a second, in the loop of line {line}. It would have "
        "come after a day.",
        {
            "imports": "import time",
            "before": 'for page in range(part["pages"][step]):  #!\n    time.sleep(1)  # read a page  #?!',
        },
        "own",
        _pages,
        decoy=True,
    ),
    Fault(
        "killed from outside",
        "outside",
        "A rank that was killed has ended by a signal, and its log ends without a traceback.",
        "After step {step} rank {rank} was killed by SIGKILL, as by a system whose memory is used up. No line of the "
        "program is wrong.",
        {},
        ENDED,
        outside=signal.SIGKILL,
    ),
    Fault(
        "stopped from outside",
        "outside",
        "A rank that was stopped still exists and tells nothing: neither stack nor dump.",
        "After step {step} rank {rank} was stopped by SIGSTOP, as by a debugger or a scheduler. No line of the "
        "program is wrong.",
        {},
        STOPPED,
        outside=signal.SIGSTOP,
    ),
)
