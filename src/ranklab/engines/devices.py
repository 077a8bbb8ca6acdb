"""Which backend the ranks of a world use, and which devices each of them sees.

Asks the operating system and starts nothing; standard library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import WorldError
from ..layout import Place, places
from ..live import tell
from ..system import backends
from ..system.backends import BACKENDS, ON_CPUS, ON_GPUS
from ..system.gpus import VISIBLE, is_part, own_gpu, visible_gpu_names

ON_THE_CPU = f"the ranks use the CPU and {ON_CPUS.title}, and see no GPU"
SHARE = f'backend="{ON_GPUS.name}"'


class Devices(NamedTuple):
    """What ranks use.

    Attributes:
        backend: its name.
        environments: what each rank's environment says about it, in rank order.
    """

    backend: str
    environments: Sequence[dict[str, str]]


def check_backend(asked: str | None) -> None:
    """Refuse a backend that is none of ours.

    Raises:
        WorldError: a sentence with those there are.
    """
    names = [backend.name for backend in BACKENDS]
    if asked is not None and asked not in names:
        there = " or ".join(f'"{name}"' for name in names)
        raise WorldError(f"backend is {there}, or left out, not {asked!r}.")


def choose_devices(nodes: Sequence[int], asked: str | None = None) -> Devices:
    """Choose what ranks on this machine use, as :func:`devices_for` does, and tell the reader of it.

    Args:
        nodes: processes on each node; all nodes are this machine.
        asked: the backend that the reader has asked for, None for what is right here.

    Raises:
        WorldError: the backend for GPUs was asked for, and there is none.
    """
    devices, sentence = devices_for(nodes, asked, visible_gpu_names())
    if sentence:
        tell(sentence)
    return devices


def devices_for(nodes: Sequence[int], asked: str | None, gpus: Sequence[str]) -> tuple[Devices, str]:
    """Say what ranks on one machine use: the backend for GPUs where each rank has one of its own.

    Args:
        nodes: processes on each node.
        asked: the backend that the reader has asked for, None for what is right. The one for GPUs is possible with a
            single GPU, which all ranks share then.
        gpus: the names of those that the machine shows, in its order.

    Returns:
        What the ranks use, and a sentence where it is not what a reader expects, else "".

    Raises:
        WorldError: the backend for GPUs was asked for, and there is none.
    """
    ranks = sum(nodes)
    if not gpus and asked == ON_GPUS.name:
        raise WorldError(
            f"This machine shows no NVIDIA GPU, and {ON_GPUS.title} needs one: leave backend out, and {ON_THE_CPU}."
        )
    enough = len(gpus) >= ranks
    if _for_cpus(asked):
        return Devices(str(asked), [backends.environment(str(asked))] * ranks), ""
    if asked is None and not enough:
        wish = f"{_too_few(len(gpus), ranks)}; {SHARE} lets ranks share a GPU." if gpus else ""
        return Devices(ON_CPUS.name, [backends.environment(ON_CPUS.name)] * ranks), wish
    own = _own if enough and not any(map(is_part, gpus)) else _shared
    environments = [own(place, gpus) for place in places(nodes)]
    return Devices(ON_GPUS.name, environments), "" if enough else _why_shared(ranks, len(gpus))


def _for_cpus(asked: str | None) -> bool:
    return asked is not None and backends.named(asked).device == "cpu"


def to_type(environments: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Return what a person would type for the same devices, by rank: nothing of ours, and nothing where they are CPUs.

    Args:
        environments: of the ranks, from :class:`Devices`; none where another launcher has set them.
    """
    return [
        {name: value for name, value in own.items() if not name.startswith("RANKLAB_")}
        for own in environments
        if own[backends.BACKEND] == ON_GPUS.name
    ]


def _why_shared(ranks: int, gpus: int) -> str:
    return (
        f"{ranks} ranks share {_count(gpus)}: right for learning, not for speed. "
        f'backend="{ON_CPUS.name}" keeps them on the CPU.'
    )


def _shared(place: Place, gpus: Sequence[str]) -> dict[str, str]:
    """Return the environment of a rank that shares a GPU: rank 0 has the first one, and after the last it begins again.

    A rank that has a part of a GPU (MIG) is one of them, also where the part is its own. It is shown that part alone:
    torch leaves it to CUDA how many parts of a list there are (``_device_count_nvml`` in torch/cuda/__init__.py, 2.13).
    """
    environment = backends.environment(ON_GPUS.name) | backends.sharing(ON_GPUS.name, place.rank)
    if any(map(is_part, gpus)):
        return environment | {VISIBLE: gpus[place.rank % len(gpus)]}
    if place.nnodes == 1 or len(gpus) == 1:
        return environment
    first, count = place.rank - place.local_rank, min(place.local_world_size, len(gpus))
    return environment | {VISIBLE: ",".join(gpus[(first + number) % len(gpus)] for number in range(count))}


def _own(place: Place, gpus: Sequence[str]) -> dict[str, str]:
    """Return the environment of a rank that has a GPU of its own; nodes on this machine get GPUs of their own, too."""
    environment = backends.environment(ON_GPUS.name)
    if place.nnodes == 1:
        return environment
    first = place.rank - place.local_rank
    node = ",".join(gpus[first : first + place.local_world_size])
    return environment | {VISIBLE: node} | backends.on_host(ON_GPUS.name, f"node{place.node_rank}")


def choose_backend_elsewhere(places: Sequence[Place], seen: Sequence[Sequence[str]], asked: str | None = None) -> str:
    """Choose the backend for GPUs where each rank has one of its own, for ranks that another launcher has started.

    Args:
        places: of the ranks, in rank order.
        seen: the GPUs that each rank sees, by name and in its order; a launcher may show each rank others.
        asked: the backend that the reader has asked for, None for what is right there.

    Raises:
        WorldError: the backend for GPUs was asked for, and not every rank has a GPU of its own.
    """
    taken = set()
    for place, gpus in zip(places, seen, strict=True):
        gpu = own_gpu(place.local_rank, place.local_world_size, len(gpus), one_each=True)
        if gpu is not None:
            taken.add((place.node_rank, gpus[gpu]))
    enough = len(taken) == len(places)
    if asked == ON_GPUS.name and not enough:
        raise WorldError(f"{_why_no_gpu(places, seen)}. Start fewer ranks, or leave backend out.")
    if _for_cpus(asked):
        return str(asked)
    if enough:
        return ON_GPUS.name
    if any(seen) and asked is None:
        tell(f"{_why_no_gpu(places, seen)}: {ON_THE_CPU}.")
    return ON_CPUS.name


def _why_no_gpu(places: Sequence[Place], seen: Sequence[Sequence[str]]) -> str:
    for node in range(places[0].nnodes):
        ranks = [place.rank for place in places if place.node_rank == node]
        gpus = len(set().union(*(seen[rank] for rank in ranks)))
        if gpus < len(ranks):
            return _fewer(gpus, len(ranks))
    return "The launcher does not show each rank a GPU of its own"


def _too_few(gpus: int, ranks: int) -> str:
    return f"{_fewer(gpus, ranks)}: {ON_THE_CPU}"


def _fewer(gpus: int, ranks: int) -> str:
    return f"{_count(gpus)} {'is' if gpus == 1 else 'are'} fewer than {ranks} ranks"


def _count(gpus: int) -> str:
    return "1 GPU" if gpus == 1 else f"{gpus} GPUs"
