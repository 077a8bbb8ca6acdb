"""The doctor's checks of GPUs: who uses them, which are hidden, what joins them, and whether torch can compute there.

On a machine without an NVIDIA driver they start nothing and say one line.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable, Sequence

import psutil

from .finding import LOOK_AGAIN, OK, PROBLEM, WARNING, Finding
from .system import leftovers, nvidia_smi, seen
from .system.backends import ON_CPUS, ON_GPUS
from .system.gpus import VISIBLE, visible_gpu_names
from .system.nvidia_smi import Card, User

NONE = Finding("GPUs", OK, f"none: the ranks use the CPU and {ON_CPUS.title}.")
HIDE = f"`{VISIBLE}=` in front of the command hides the GPUs"
DRIVER_MEND = "A restart loads a driver that was updated; a container gets its GPUs with docker run --gpus all."


def checks() -> list[Callable[[], list[Finding]]]:
    """Return the checks that this machine needs, each of which returns its findings, none where all is as usual.

    Who uses the GPUs is looked up now, before the doctor's own ranks do.
    """
    try:
        listing = nvidia_smi.ask("-L")
        users = nvidia_smi.users() if listing else []
    except (OSError, subprocess.TimeoutExpired) as error:
        return _told(Finding("GPUs", WARNING, f"nvidia-smi does not answer: {type(error).__name__}.", DRIVER_MEND))
    cards, names = nvidia_smi.read_cards(listing), visible_gpu_names()
    if not cards:
        said = listing.strip().rstrip(".").splitlines()[:1]
        return _told(_without_driver(said[0]) if said else NONE)
    gone, alive = leftovers.on_gpus({user.pid for user in users})
    found = _told(_users(len(names), users, alive), *_left(users, gone), *_mask(cards, names), *_parts(cards))
    if names:
        shown = [number for number, card in enumerate(cards) if card.name in names]
        found += [functools.partial(_joined, shown), functools.partial(_torch, len(names))]
    return found


def _told(*findings: Finding) -> list[Callable[[], list[Finding]]]:
    """Return findings that are known already as one check."""
    return [lambda: list(findings)]


def _without_driver(said: str) -> Finding:
    """The driver's program is there and shows no GPU; it says why."""
    return Finding("GPUs", OK, f"none ({said}): the ranks use the CPU and {ON_CPUS.title}.", DRIVER_MEND)


def _users(count: int, users: Sequence[User], ours: Sequence[psutil.Process]) -> Finding:
    if not count:
        return Finding("GPUs", OK, f"none visible: the ranks use the CPU and {ON_CPUS.title}.")
    said = f"{count} visible, used by {_count(len(users), 'process', 'processes')}"
    if ours:
        fix = "world.stop() in their notebooks frees what they hold; `nvidia-smi` shows whose the others are."
        return Finding("GPUs", WARNING, f"{said}; {_count(len(ours), 'rank')} of your own notebooks among them.", fix)
    if users:
        return Finding("GPUs", WARNING, f"{said}.", "Their memory is not yours: `nvidia-smi` shows whose they are.")
    return Finding("GPUs", OK, f"{said}.")


def _left(users: Sequence[User], gone: Sequence[psutil.Process]) -> list[Finding]:
    """Say what a notebook that has gone still holds on a GPU."""
    if not gone:
        return []
    held = {user.pid: user.megabytes for user in users}
    megabytes = sum(held.get(process.pid, 0) for process in gone)
    much = f"{megabytes} MB of GPU memory" if megabytes else "GPU memory"
    said = f"{_count(len(gone), 'process', 'processes')} of a notebook that has gone {'hold' if gone[1:] else 'holds'}"
    return [Finding("GPU leftovers", WARNING, f"{said} {much}.", "ranklab.start() ends them.")]


def _mask(cards: Sequence[Card], names: Sequence[str]) -> list[Finding]:
    """Read CUDA_VISIBLE_DEVICES as CUDA does: up to the first entry that names no GPU."""
    shown = os.environ.get(VISIBLE)
    if shown is None:
        return []
    asked = [entry.strip() for entry in shown.split(",")]
    said = f"{VISIBLE} shows {len(names)} of {_count(len(cards), 'GPU')}"
    hidden = not shown.strip() or asked[0].startswith("-")
    if len(set(asked)) < len(asked):  # then CUDA shows none
        fix = f'Name each once; backend="{ON_GPUS.name}" lets ranks share one.'
        return [Finding("visible", WARNING, f"{VISIBLE} names a GPU twice.", fix)]
    if len(names) < len(asked) and not hidden:
        wrong = f"; its entry {len(names) + 1} names none, and CUDA reads no further."
        return [Finding("visible", WARNING, said + wrong, f"Correct it: `nvidia-smi -L` lists them from 0. {HIDE}.")]
    return [Finding("visible", OK, f"{said}.", f"`unset {VISIBLE}` shows all." if hidden else "")]


def _parts(cards: Sequence[Card]) -> list[Finding]:
    """Say which GPUs are cut into parts (MIG)."""
    cut = {number: len(card.parts) for number, card in enumerate(cards) if card.parts}
    if not cut:
        return []
    told = ", ".join(f"GPU {number} into {_count(parts, 'part')}" for number, parts in cut.items())
    fix = (
        f'`{VISIBLE}=MIG-…` chooses one (`nvidia-smi -L` names them), and backend="{ON_GPUS.name}" lets ranks share '
        "it. Who runs this machine joins them again: nvidia-smi -mig 0."
    )
    said = f"cut: {told}. A process sees one part, and parts do not reach each other's memory."
    return [Finding("MIG", WARNING, said, fix)]


def _joined(shown: Sequence[int]) -> list[Finding]:
    """Read `nvidia-smi topo -m` into a sentence."""
    if len(shown) < 2:
        return []
    ways = nvidia_smi.read_ways(nvidia_smi.ask("topo", "-m"))
    told = nvidia_smi.tell_ways(ways, shown)
    if not told:
        return [Finding("topology", OK, "nvidia-smi does not tell here how the GPUs are joined.")]
    near = ",".join(map(str, nvidia_smi.neighbours(ways, shown)))
    fix = f"Ranks that talk most belong where NVLink is: `{VISIBLE}={near}`, for example." if near else ""
    return [Finding("topology", OK, f"{len(shown)} GPUs: {told}", fix)]


def _torch(count: int) -> list[Finding]:
    """Compare what torch sees with what the driver shows, and its CUDA with the driver's."""
    looked = seen.look()
    if looked.busy:
        return [Finding("CUDA", WARNING, f"torch {looked.problem}.", LOOK_AGAIN)]
    finding = _driver(looked) or _seen(looked, count)
    if finding:
        return [finding]
    said = f"torch was built with CUDA {looked.cuda}, the driver knows CUDA {looked.driver}; it computes on each GPU."
    return [Finding("CUDA", OK, said), *_peers(looked)]


def _driver(looked: seen.Seen) -> Finding | None:
    if not looked.cuda:
        if looked.problem:
            return Finding("CUDA", PROBLEM, f"torch could not be asked: {looked.problem}.", "Does `import torch` work?")
        fix = f"Install the torch with CUDA (pytorch.org names the command). {HIDE}, and the book uses the CPU."
        return Finding("CUDA", PROBLEM, "this torch was built for CPUs alone, and the machine shows GPUs.", fix)
    if _major(looked.driver) < _major(looked.cuda):
        fix = (
            f"Update the driver, or install a torch that was built with CUDA {_major(looked.driver)} (pytorch.org has "
            f"the older commands). {HIDE}, and the book uses the CPU."
        )
        knows = f"knows CUDA {looked.driver}" if looked.driver else "does not answer"
        said = f"torch was built with CUDA {looked.cuda}, and the driver {knows}."
        return Finding("CUDA", PROBLEM, said, fix if looked.driver else DRIVER_MEND)
    return None


def _seen(looked: seen.Seen, count: int) -> Finding | None:
    if looked.problem:
        fix = f"A GPU that this torch has no code for, or that others fill, is left out by {VISIBLE}."
        return Finding("CUDA", PROBLEM, f"torch cannot compute on {looked.problem}.", fix)
    if len(looked.names) < count:
        said = f"nvidia-smi shows {_count(count, 'GPU')}, and torch sees {len(looked.names)}."
        fix = "Parts of a GPU (MIG) are seen one at a time; else look for the reason with `nvidia-smi` and `dmesg`."
        return Finding("CUDA", PROBLEM, said, f"{fix} `{VISIBLE}` names those to use.")
    return None


def _peers(looked: seen.Seen) -> list[Finding]:
    """Say whether GPUs reach each other's memory without the machine's own in between."""
    count = len(looked.names)
    if count < 2:
        return []
    if not looked.apart:
        return [Finding("peer access", OK, f"each of the {count} GPUs reaches the memory of the others.")]
    pairs = count * (count - 1) // 2
    said = f"{len(looked.apart)} of {_count(pairs, 'pair')} of GPUs {'do' if looked.apart[1:] else 'does'} not have it"
    fix = (
        "Nothing fails, and what these say to each other takes longer. Cards for gaming lack it; on a server the "
        "reason is mostly PCIe's ACS or a virtual machine: ask who runs it."
    )
    said = f"{said}: {ON_GPUS.title} goes through the machine's memory there."
    return [Finding("peer access", WARNING, said, fix)]


def _major(version: str) -> int:
    return int(version.partition(".")[0] or 0)


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
