"""What the choice of a backend adds to the environments of a launch: of each torchrun, and of each rank below it.

torchrun hands its environment to all of its ranks. Where they share a GPU, each needs variables of its own. A script
sets them: ``PYTHON_EXEC``, torchrun's own variable, names what runs the program in Python's place, and the script then
becomes Python, so that nothing of it is left.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple

from ..engines.devices import check_backend, devices_for
from ..errors import RanklabError, WorldError
from ..layout import LOOPBACK, places
from ..system import backends
from ..system.backends import ON_CPUS, ON_GPUS
from ..system.gpus import VISIBLE, visible_gpu_names
from .commandline import Launch

# "System executable override" (torch/distributed/run.py, torch 2.13).
PYTHON_EXEC = "PYTHON_EXEC"
# With these torchrun does not ask for it (config_from_args, the same file).
NO_PYTHON = ("--no-python", "--run-path")


class LaunchDevices(NamedTuple):
    """What a launch adds to environments.

    Attributes:
        told: what the reader should know about the GPUs, "" where nothing.
        nodes: variables of the torchrun of each node, which its ranks inherit.
        ranks: variables of each rank beside those, by rank; empty where ranks need none of their own.
    """

    told: str
    nodes: Sequence[Mapping[str, str]]
    ranks: Sequence[Mapping[str, str]] = ()

    @property
    def note(self) -> str:
        """One sentence for those who type the commands: what was added; "" where nothing was."""
        words = _in_words(self.nodes, "node") | _in_words(self.ranks, "rank")
        return f"Added to the environment of each rank: {', '.join(sorted(words))}." if words else ""


def choose_launch_devices(
    launch: Launch, hosts: Sequence[Any] | None, asked: str | None, extra: Mapping[str, object]
) -> LaunchDevices:
    """Choose what the ranks of a launch use, by the rules of ranks that ``ranklab.start`` starts.

    Args:
        launch: what is launched.
        hosts: one object a node, None where all nodes are this machine. A host that names its ``interface`` is on this
            machine and uses its GPUs; one that does not is a computer of its own, of which nothing is known here.
        asked: the backend that the reader has asked for; None leaves it to torchrun and the program where there is no
            GPU, and where one node has a GPU for every rank.
        extra: the reader's variables.

    Raises:
        WorldError: no such backend, no GPU for it, or a program that cannot be given what its ranks need.
    """
    check_backend(asked)
    count = len(launch.nodes)
    wires = [getattr(host, "interface", "") for host in hosts[:count]] if hosts else [LOOPBACK] * count
    if not all(wires):
        return LaunchDevices("", [backends.environment(asked) if asked else {}] * count)
    gpus = visible_gpu_names({**os.environ, **{name: str(value) for name, value in extra.items()}})
    if asked is None and not gpus:
        return LaunchDevices("", [{}] * count)
    (backend, environments), told = devices_for(launch.nodes, asked, gpus)
    if asked is None and environments[0] == backends.environment(ON_GPUS.name):
        return LaunchDevices("", [{}])
    # What the reader sets is set; only the list of GPUs has been read, and is passed on as it was dealt out.
    environments = [_without(extra.keys() - {VISIBLE}, environment) for environment in environments]
    # An interface that is set for this whole machine is none of a host's.
    set_by_reader = extra.keys() if hosts else extra.keys() | os.environ.keys()
    ways = [_without(set_by_reader, backends.interface(backend, wire)) for wire in wires]
    if backends.SHARED in environments[0]:
        _require_python(launch)
        return LaunchDevices(told, ways, environments)
    nodes = [environments[place.rank] for place in places(launch.nodes) if place.local_rank == 0]
    if len(nodes) > 1 and backend != ON_CPUS.name:  # what they say to each other takes the way that was made for it
        nodes = [node | way for node, way in zip(nodes, ways, strict=True)]
    return LaunchDevices(told, nodes)


def _without(names: AbstractSet[str], environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in names}


def python_for(ranks: Sequence[Mapping[str, str]], environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Write the script that gives each rank variables of its own, and return what has torchrun use it.

    Args:
        ranks: the variables, by rank.
        environment: of torchrun; what is set there already in ``PYTHON_EXEC`` is what the script becomes.
        folder: the private folder of the launch.

    Raises:
        RanklabError: the system runs no program in that folder.
    """
    script = folder / "python-of-a-rank"
    script.write_text(rank_script(ranks, environment.get(PYTHON_EXEC), sys.executable))
    script.chmod(0o700)
    if not os.access(script, os.X_OK):  # also false where the file system is mounted so that nothing on it can be run
        raise RanklabError(
            "Ranks that share a GPU are started by a script in the folder of temporary files, and this system runs "
            "nothing from there (noexec): name another folder, for example `export TMPDIR=~`, and start Jupyter again."
        )
    return {PYTHON_EXEC: str(script)}


def rank_script(ranks: Sequence[Mapping[str, str]], reader: str | None, python: str) -> str:
    """Return a shell script that sets a rank's variables by its ``RANK`` and becomes Python.

    Args:
        ranks: the variables, by rank.
        reader: the ``PYTHON_EXEC`` of the reader, None where there is none.
        python: what runs a program otherwise.
    """
    cases = []
    for rank, variables in enumerate(ranks):
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(variables.items()))
        cases.append(f"{rank}) export {words} ;;")
    # A torchrun that the program starts has ranks of its own.
    back = f"export {PYTHON_EXEC}={shlex.quote(reader)}" if reader else f"unset {PYTHON_EXEC}"
    start = f'exec {shlex.quote(reader or python)} "$@"'
    return "\n".join(["#!/bin/sh", 'case "$RANK" in', *cases, "esac", back, start, ""])


def _require_python(launch: Launch) -> None:
    """Refuse a program that is started without ``PYTHON_EXEC``."""
    for flag in NO_PYTHON:
        if flag in launch.flags:
            raise WorldError(
                f"With {flag}, torchrun starts no Python for each rank, so ranks cannot share a GPU: leave it out, "
                "or start no more ranks than there are GPUs."
            )


def _in_words(environments: Sequence[Mapping[str, str]], each: str) -> set[str]:
    """Return the variables of nodes or ranks as a reader types them; names of GPUs are the machine's, and not told."""
    words = set()
    for name in environments[0] if environments else ():
        values = [environment[name] for environment in environments]
        numbered = {value.replace(str(number), "$RANK") for number, value in enumerate(values)}
        if name == VISIBLE and any(values):
            words.add(f"{name} (each {each} its own)")
        elif len(set(values)) == 1:
            words.add(f"{name}={values[0]}")
        elif each == "rank" and len(numbered) == 1:
            words.add(f"{name}={numbered.pop()}")
        else:
            words.add(f"{name} (each {each} its own)")
    return words
