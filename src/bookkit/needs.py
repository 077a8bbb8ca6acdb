"""Cells tagged ``needs-hosts``: executed everywhere, compared where this machine can make hosts.

Such a cell begins with ``if lab:``, so that it does nothing where there are none. The module is also a plugin for
nbval: ``pytest -p bookkit.needs --nbval``.
"""

import functools

from bookkit.notebook import code_cells, tags

NEEDS_HOSTS = "needs-hosts"


@functools.cache
def can_make_hosts():
    """Whether this machine allows hosts of their own; tries it, which takes a tenth of a second."""
    import ranklab

    try:
        with ranklab.hosts(1):
            return True
    except ranklab.WorldError:
        return False


def missing(notebook):
    """Return what a notebook needs and this machine has not, as words, or ""."""
    needed = any(NEEDS_HOSTS in tags(cell) for _, _, cell in code_cells(notebook))
    return "hosts of their own (python -m ranklab doctor says why)" if needed and not can_make_hosts() else ""


def pytest_collection_modifyitems(items):
    """Leave the output of such cells uncompared where there are no hosts; nbval calls its cells items."""
    for item in items:
        cell = getattr(item, "cell", None)
        if cell is not None and NEEDS_HOSTS in tags(cell) and not can_make_hosts():
            item.options["check"] = False
