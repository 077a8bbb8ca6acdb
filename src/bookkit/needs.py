"""What a chapter needs: an environment in which it prints the same everywhere, and for some cells hosts.

A cell tagged ``needs-hosts`` is executed everywhere and compared where this machine can make hosts. What uses hosts
stands below ``if lab:``, so that it does nothing where there are none. The module is also a plugin that tells nbval
both: ``pytest -p bookkit.needs --nbval``.
"""

import functools
import os
import tempfile

from bookkit.notebook import code_cells, read, tags

NEEDS_HOSTS = "needs-hosts"
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


def lacking_hosts(paths):
    """The chapters among ``paths`` that need hosts, where this machine can make none."""
    needing = [path for path in paths if any(NEEDS_HOSTS in tags(cell) for _, _, cell in code_cells(read(path)))]
    return needing if needing and not can_make_hosts() else []


def pytest_configure(config):
    """Let nbval's kernels, which inherit our environment, print what ``record``'s print."""
    # Ranks of a kernel that nbval has just killed may still be writing there.
    private = tempfile.TemporaryDirectory(prefix="bookkit-", ignore_cleanup_errors=True)
    config.add_cleanup(private.cleanup)
    os.environ.update(repeatable(private.name))


def pytest_collection_modifyitems(items):
    """Leave the output of such cells uncompared where there are no hosts; nbval calls its cells items."""
    for item in items:
        cell = getattr(item, "cell", None)
        if cell is not None and NEEDS_HOSTS in tags(cell) and not can_make_hosts():
            item.options["check"] = False
