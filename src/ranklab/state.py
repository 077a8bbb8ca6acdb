"""What a rank is doing, as its watchdog tells the notebook: plain data that travels as JSON.

Written in a rank (:mod:`ranklab.rank.watchdog`, :mod:`ranklab.rank.recorder`), asked for by the notebook
(:mod:`ranklab.engines.asking`), read by what explains a hang (:mod:`ranklab.hangs`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

# Calls that wait for one rank, which takes part in nothing else meanwhile.
RECEIVES = tuple(f"torch.distributed.{name}" for name in ("recv", "irecv", "recv_object_list"))
SENDS = tuple(f"torch.distributed.{name}" for name in ("send", "isend", "send_object_list"))


@dataclass(frozen=True)
class Collective:
    """One collective that a rank has called.

    Attributes:
        group: torch's name of the process group.
        number: sequence number in that group, from 1.
        name: the operation, ``all_reduce``.
        sizes: shapes of the tensors that went in; empty for a barrier.
        type: of their elements, ``float32``.
        done: whether it has come to its end on this rank.
        recent: whether it was called since the cell began.
        backend: which has carried it out, as :mod:`ranklab.system.backends` names it.
        lines: the lines of the cells that called it, where the call came back before it was done; empty where the rank
            is still in the call, and :attr:`RankState.lines` tells.
    """

    group: str
    number: int
    name: str
    sizes: list[list[int]]
    type: str
    done: bool
    recent: bool = True
    backend: str = ""
    lines: list[str] = field(default_factory=list)


class Pulse(NamedTuple):
    """Counts that stand still while a rank waits.

    Attributes:
        called: collectives called on the present groups; also what has ended, where a call comes back before that.
        woken: times that the rank's thread has slept and was woken; 0 where the system does not count it (macOS).
        worked: nanoseconds in which the thread has computed, or was ready to; 0 where the system does not count them.
        carried: bytes that the cable of the rank's host has carried; 0 for a rank on no host.
    """

    called: int = 0
    woken: int = 0
    worked: int = 0
    carried: int = 0


@dataclass
class RankState:
    """What a rank is doing at one moment.

    Attributes:
        lines: lines of the reader's cells and modules that it is in, outermost first, as a traceback shows them.
        call: the library function that the last of them called, or below it the one that sends or receives a message;
            "" where it is in the reader's own code.
        peers: the ranks that this function was told to send to or receive from, by the name of the argument.
        stack: the library functions from there inwards.
        busy: whether a cell runs.
        seconds: since the cell began.
        pulse: to be compared with a later one; None where the rank has told none.
        groups: its process groups, name to ranks.
        collectives: the latest on each group, oldest first.
        stopped: whether its process was stopped (SIGSTOP), and could tell nothing else.
        goes_on: whether messages come and go; known once two pulses were compared.
        sends: whether the cable of its host carries bytes; known as ``goes_on`` is.
        computes: whether the rank's thread computes; known as ``goes_on`` is.
        draining: whether all lines of the cell have run, and the rank waits for the work that they gave to its device.
    """

    lines: list[str] = field(default_factory=list)
    call: str = ""
    peers: dict[str, int] = field(default_factory=dict)
    stack: list[str] = field(default_factory=list)
    busy: bool = False
    seconds: float = 0.0
    pulse: Pulse | None = None
    groups: dict[str, list[int]] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list)
    stopped: bool = False
    goes_on: bool = False
    sends: bool = False
    computes: bool = False
    draining: bool = False

    @classmethod
    def read(cls, told: dict[str, Any]) -> RankState:
        """Return the state that JSON has told."""
        pulse, collectives = told["pulse"], told["collectives"]
        return cls(
            **told
            | {
                "pulse": None if pulse is None else Pulse(*pulse),
                "collectives": [Collective(**entry) for entry in collectives],
            }
        )


Answer = RankState | Pulse | int
# What may be asked of a watchdog, and how its answer is read.
QUESTIONS: dict[str, Callable[[Any], Answer]] = {
    "where": RankState.read,
    "cell": RankState.read,
    "pulse": lambda told: Pulse(*told),
    "cut": int,
}


def write(answer: Answer | None) -> bytes:
    """Return an answer as it travels; None says that there is none."""
    return json.dumps(asdict(answer) if isinstance(answer, RankState) else answer).encode()


def read(question: str, told: bytes) -> Answer | None:
    """Return the answer to a question, None where there is none.

    Args:
        question: one of :data:`QUESTIONS`.
        told: what :func:`write` made.
    """
    answer = json.loads(told) if told else None
    return None if answer is None else QUESTIONS[question](answer)
