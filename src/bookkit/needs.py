"""What a chapter needs: an environment in which it prints the same everywhere, and for some cells a program or hosts.

A cell with a tag of ``TAGS`` is executed everywhere, and compared where this machine has what the tag names; elsewhere
the cell says so in a sentence, or does nothing. Which programs there are stands in ``ranklab.programs``. The module is
also a plugin that tells nbval both: ``pytest -p bookkit.needs --nbval``.
"""

import functools
import os
import tempfile

import pytest

from bookkit.machine import places
from bookkit.notebook import code_cells, read, tags
from ranklab.programs import PROGRAMS, lacking

NEEDS_HOSTS = "needs-hosts"
TAGS = {program.tag for program in PROGRAMS if program.tag}
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


def lack(tag):
    """What this machine lacks for cells with a tag, as the end of "This machine …"; "" where it lacks nothing."""
    if tag not in TAGS:
        return ""
    if tag == NEEDS_HOSTS:  # which may also be forbidden where all programs are there
        return "" if can_make_hosts() else "makes no hosts (`make doctor` says why)"
    found = [program for program in lacking() if program.tag == tag]
    return " and ".join(f"has no {program.name} (sudo apt install {program.package})" for program in found)


def unmet(paths):
    """What this machine lacks for chapters, as ``{what it lacks: [the chapters]}``."""
    found: dict[str, list] = {}
    for path in paths:
        asked = {tag for _, _, cell in code_cells(read(path)) for tag in tags(cell)}
        for reason in filter(None, map(lack, sorted(asked))):
            found.setdefault(reason, []).append(path)
    return found


def pytest_configure(config):
    """Let nbval's kernels, which inherit our environment, print what ``record``'s print."""
    # Ranks of a kernel that nbval has just killed may still be writing there.
    private = tempfile.TemporaryDirectory(prefix="bookkit-", ignore_cleanup_errors=True)
    config.add_cleanup(private.cleanup)
    os.environ.update(repeatable(private.name))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """With ``-n auto`` as many chapters are compared at once as this machine has room for."""
    return places()


def pytest_collection_modifyitems(items):
    """Leave the output of such cells uncompared where something lacks; nbval calls its cells items."""
    for item in items:
        cell = getattr(item, "cell", None)
        if cell is not None and any(map(lack, tags(cell))):
            item.options["check"] = False
