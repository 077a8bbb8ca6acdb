"""What ``nvidia-smi`` tells of this machine, as data: its GPUs and their parts, who uses them, and what joins them.

Standard library only. The readers are pure: a text goes in. Names of GPUs (UUIDs) are compared and never shown.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

PROGRAM = "nvidia-smi"
SECONDS = 10.0  # without its persistence daemon the driver wakes up first
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# What `nvidia-smi topo -m` calls the way between two GPUs, the shortest first.
WAYS = {
    "PIX": "through one PCIe switch",
    "PXB": "through several PCIe switches",
    "PHB": "through the processor's PCIe bridge",
    "NODE": "between PCIe bridges of one processor",
    "SYS": "between processors",
}


@dataclass(frozen=True)
class Card:
    """A GPU of this machine.

    Attributes:
        name: its UUID.
        parts: the UUIDs of the parts that it is cut into (MIG), none where it is whole.
    """

    name: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class User:
    """A process that computes on a GPU.

    Attributes:
        pid: its id as the driver knows it; inside a container that may be a number of the machine outside.
        megabytes: what it holds there, 0 where the driver does not tell.
    """

    pid: int
    megabytes: int


def ask(*arguments: str) -> str:
    """Return what ``nvidia-smi`` prints, also where it fails; "" where there is none.

    Raises:
        OSError: it could not be started.
        subprocess.TimeoutExpired: it did not answer within ten seconds.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        return ""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.stdout


def read_cards(listing: str) -> list[Card]:
    """Return the GPUs of a machine.

    Args:
        listing: what ``nvidia-smi -L`` prints: a line for each GPU, and an indented one for each of its parts.
    """
    cards: list[Card] = []
    for line in listing.splitlines():
        name = line.rpartition("UUID: ")[2].rstrip(")")
        if line.startswith("GPU "):  # "GPU 0: NVIDIA H200 (UUID: GPU-…)"
            cards.append(Card(name))
        elif cards and line.strip().startswith("MIG "):  # "  MIG 3g.20gb     Device  0: (UUID: MIG-…)"
            cards[-1] = Card(cards[-1].name, (*cards[-1].parts, name))
    return cards


def read_users(table: str) -> list[User]:
    """Return the processes that compute on GPUs, each once.

    Args:
        table: what ``--query-compute-apps=pid,used_memory --format=csv,noheader,nounits`` prints.
    """
    held: dict[int, int] = {}
    for line in table.splitlines():
        pid, _, megabytes = (part.strip() for part in line.partition(","))
        if pid.isdigit():  # a line may be a sentence: that the driver does not support it
            held[int(pid)] = held.get(int(pid), 0) + (int(megabytes) if megabytes.isdigit() else 0)
    return [User(*entry) for entry in held.items()]


def users() -> list[User]:
    """Return the processes that compute on GPUs of this machine now, as far as the driver shows them."""
    return read_users(ask("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"))


def read_ways(matrix: str) -> dict[tuple[int, int], str]:
    """Return how each pair of GPUs is joined.

    Args:
        matrix: what ``nvidia-smi topo -m`` prints.

    Returns:
        The driver's word for each pair, the smaller number first: ``{(0, 1): "NV18"}``; empty where it told nothing.
    """
    columns: list[int] = []
    ways = {}
    for line in COLOURS.sub("", matrix).splitlines():
        words = line.split()
        numbers = [int(word[3:]) for word in words if re.fullmatch(r"GPU\d+", word)]
        if not columns:
            columns = numbers  # the header; GPUs come first in it, network cards and affinities after them
        elif numbers and len(words) > len(columns):
            for column, way in zip(columns, words[1:], strict=False):
                if numbers[0] < column:
                    ways[numbers[0], column] = way
    return ways


def tell_ways(ways: dict[tuple[int, int], str], shown: Sequence[int]) -> str:
    """Say in one sentence how GPUs are joined, the fastest way first; "" where nothing is known of any pair.

    Args:
        ways: of :func:`read_ways`.
        shown: the numbers of the GPUs to speak of.
    """
    counted: dict[str, int] = {}
    for pair, way in ways.items():
        if set(pair) <= set(shown):
            counted[way] = counted.get(way, 0) + 1
    told = [(way, number, _way(way)) for way, number in sorted(counted.items(), key=lambda entry: _distance(entry[0]))]
    if len(told) == 1:
        way, number, words = told[0]
        return f"{'they are joined' if number == 1 else 'each pair is joined'} {words} ({way})."
    parts = [f"{number} {'pair' if number == 1 else 'pairs'} {words} ({way})" for way, number, words in told]
    return "; ".join(parts) + "." if parts else ""


def neighbours(ways: dict[tuple[int, int], str], shown: Sequence[int]) -> list[int]:
    """Return GPUs that are joined by NVLink, where other pairs are not: those that ranks had best use together.

    Args:
        ways: of :func:`read_ways`.
        shown: the numbers of the GPUs to choose from.

    Returns:
        The first GPU with such a neighbour and all of its neighbours, in order; none where it makes no difference.
    """
    pairs = {pair: way.startswith("NV") for pair, way in ways.items() if set(pair) <= set(shown)}
    if not any(pairs.values()) or all(pairs.values()):
        return []
    first = min(pair[0] for pair, linked in pairs.items() if linked)
    return [first, *sorted(pair[1] for pair, linked in pairs.items() if linked and pair[0] == first)]


def _way(word: str) -> str:
    return f"by {word[2:]} NVLinks" if re.fullmatch(r"NV\d+", word) else WAYS.get(word, "in a way of its own")


def _distance(word: str) -> int:
    """Return where a way stands among the others; more NVLinks are nearer."""
    if re.fullmatch(r"NV\d+", word):
        return -int(word[2:])
    return [*WAYS, word].index(word) + 1
