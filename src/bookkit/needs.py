"""What a chapter needs: an environment in which it prints the same everywhere, and for some cells more than a computer.

A cell with a tag of ``NEEDS`` asks for a program, a package, hosts or a GPU, and is compared where this machine has it.
Elsewhere

* a cell that runs everywhere says in a sentence what lacks, or does nothing (programs, packages, hosts);
* a cell that is *kept* is not executed and shows what was stored where it could be (a GPU).

Which programs there are stands in ``ranklab.programs``, and which packages in ``ranklab.packages``. The module is also
a plugin that tells nbval all of this: ``pytest -p bookkit.needs --nbval``.
"""

import functools
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from bookkit.machine import places
from bookkit.notebook import code_cells, read, tags
from ranklab.packages import OPTIONAL, absent
from ranklab.programs import PROGRAMS, lacking
from ranklab.system import seen
from ranklab.system.gpus import visible_gpus

NEEDS_HOSTS = "needs-hosts"
NEEDS_SLURM = "needs-slurm"
NEEDS_GPU = "needs-gpu"
NEEDS_FRAMEWORKS = "needs-frameworks"
EXPECTED_ERROR = "raises-exception"
EXPECTED_ON_GPU = "raises-on-gpu"
REPEATABLE = {
    "IPP_NONINTERACTIVE": "1",  # ipyparallel then prints in the order of ranks, not of arrival
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "COLUMNS": "80",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # else the debugger may warn on stderr
}


def repeatable(private):
    """The environment variables of a kernel whose outputs are stored or compared.

    Args:
        private: a folder for IPython: the user's own profile and start-up files must not colour what is printed.
    """
    return REPEATABLE | {"IPYTHONDIR": private}


@functools.cache
def can_make_hosts():
    """Whether this machine allows hosts of their own; tries it, which takes a tenth of a second."""
    import ranklab

    try:
        with ranklab.hosts(1):
            return True
    except ranklab.RanklabError:
        return False


@functools.cache
def card():
    """What torch says of this machine's GPUs, as a ``ranklab.system.seen.Seen``; None where none can be used."""
    if not visible_gpus():
        return None
    looked = seen.look()
    return looked if looked.names and not looked.problem else None


def _no_hosts():
    # They may also be forbidden where all programs are there.
    return "" if can_make_hosts() else "makes no hosts (`make doctor` says why)"


def _no_slurm():
    return _no_program(NEEDS_SLURM) or _no_hosts()  # it runs on hosts


@functools.cache
def no_gpu():
    """Why cells that need a GPU are not run here, as the end of "This machine …"; "" where they are."""
    if card():
        return ""
    return "has a GPU that torch cannot use (`make doctor` says why)" if visible_gpus() else "shows no NVIDIA GPU"


def _no_program(tag):
    found = [program for program in lacking() if program.tag == tag]
    return " and ".join(f"has no {program.name} (sudo apt install {program.package})" for program in found)


def _no_package(tag):
    found = absent(tag)
    names = " and ".join(package.name for package in found)
    return f"has no {names} (make environment {found[0].wish})" if found else ""


@dataclass(frozen=True)
class Need:
    """What a tag asks for.

    Attributes:
        lack: what this machine lacks of it, as the end of "This machine …"; "" where nothing.
        kept: whether a cell is not executed where it lacks, and keeps what is stored; else it runs everywhere.
    """

    lack: Callable[[], str]
    kept: bool = False


NEEDS = {program.tag: Need(functools.partial(_no_program, program.tag)) for program in PROGRAMS if program.tag}
NEEDS |= {tag: Need(functools.partial(_no_package, tag)) for tag in dict.fromkeys(each.tag for each in OPTIONAL)}
NEEDS |= {NEEDS_HOSTS: Need(_no_hosts), NEEDS_SLURM: Need(_no_slurm), NEEDS_GPU: Need(no_gpu, kept=True)}


def lack(tag):
    """What this machine lacks for cells with a tag, as the end of "This machine …"; "" where it lacks nothing."""
    return NEEDS[tag].lack() if tag in NEEDS else ""


def may_be_kept(cell):
    """Whether there are machines on which a cell is not executed and keeps what is stored."""
    return any(NEEDS[tag].kept for tag in tags(cell) if tag in NEEDS)


def kept(cell):
    """Why this machine does not execute a cell, as the end of "This machine …"; "" where it does."""
    return next(filter(None, (lack(tag) for tag in tags(cell) if tag in NEEDS and NEEDS[tag].kept)), "")


def raises(cell):
    """Whether a cell shows an error on purpose where it is run.

    A cell that needs a GPU is tagged ``raises-exception`` in any case: without a GPU it raises, and *Run All* in
    JupyterLab and VS Code goes on below a cell only where it has this tag.
    """
    return (EXPECTED_ON_GPU if NEEDS_GPU in tags(cell) else EXPECTED_ERROR) in tags(cell)


def unmet(paths, *, keeping=False):
    """What this machine lacks for chapters, as ``{what it lacks: [the chapters]}``.

    Args:
        paths: the chapters.
        keeping: look at the cells that keep what is stored then, instead of those that run everywhere.
    """
    found: dict[str, list] = {}
    for path in paths:
        asked = {tag for _, _, cell in code_cells(read(path)) for tag in tags(cell)}
        chosen = sorted(tag for tag in asked & NEEDS.keys() if NEEDS[tag].kept == keeping)
        for reason in filter(None, map(lack, chosen)):
            found.setdefault(reason, []).append(path)
    return found


def pytest_configure(config):
    """Let nbval's kernels, which inherit our environment, print what ``record``'s print."""
    # Ranks of a kernel that nbval has just killed may still be writing there.
    private = tempfile.TemporaryDirectory(prefix="bookkit-", ignore_cleanup_errors=True)
    config.add_cleanup(private.cleanup)
    os.environ.update(repeatable(private.name))
    if config.getoption("nbval", False):
        from nbval import kernel

        from bookkit.sockets import KernelThroughFiles

        kernel.KernelManager = KernelThroughFiles


@pytest.hookimpl(optionalhook=True, tryfirst=True)  # before xdist's own, which is registered after us
def pytest_xdist_auto_num_workers():
    """With ``-n auto`` one chapter more is compared at once than are executed: ranks wait for much of their time."""
    return places() + 1


def pytest_collection_modifyitems(items):
    """Leave such cells uncompared where something lacks, or do not run them; nbval calls its cells items."""
    for item in items:
        cell = getattr(item, "cell", None)
        if cell is None:
            continue
        item.options["check_exception"] = raises(cell)
        if reason := kept(cell):
            item.add_marker(pytest.mark.skip(reason=f"this machine {reason}, so the cell keeps what is stored"))
        elif any(map(lack, tags(cell))):
            item.options["check"] = False
