"""A clock for a run that somebody else ends: what it would come too late for is left out, and named.

Where a whole run may take so long and no longer, as in ``.ci/run``, a machine of half the usual speed would be stopped
in the middle, and nobody would learn anything. ``BOOKKIT_UNTIL`` is that moment, in seconds since 1970.

* No chapter is begun after it. One that has begun is compared to its end.
* Tests that start ranks, hosts, builds or a browser may take half of the time that is left when they begin, so that
  chapters have the other half. The others take no time that matters.

Each that is left out is skipped with a sentence. Without the variable nothing is left out. A plugin:
``pytest -p bookkit.until``.
"""

import functools
import os
import time
from pathlib import Path

import pytest

VARIABLE = "BOOKKIT_UNTIL"
TAKE_TIME = ("ranks", "hosts", "build", "site")  # markers; pyproject.toml explains them
_begun: set[Path] = set()  # the chapters


@functools.cache
def _session_began():
    """When the tests of this run began; workers of pytest-xdist are told by the process that starts them."""
    return float(os.environ.setdefault(f"{VARIABLE}_BEGAN", str(time.time())))


def pytest_configure():
    """Look at the clock before any worker is started."""
    _session_began()


@pytest.hookimpl(tryfirst=True)  # before the chapter's kernel is started
def pytest_runtest_setup(item):
    """Leave out what has not begun in time; nbval calls the cells of a chapter items."""
    if not (said := os.environ.get(VARIABLE)):
        return
    now, until = time.time(), float(said)
    if hasattr(item, "cell"):
        if item.path not in _begun and now > until:
            pytest.skip(f"no time was left for {item.path.stem}, which was not compared ({VARIABLE})")
        _begun.add(item.path)
    elif any(map(item.get_closest_marker, TAKE_TIME)) and now > (_session_began() + until) / 2:
        pytest.skip(f"no time was left for this test ({VARIABLE})")


def pytest_terminal_summary(terminalreporter):
    """Say how much was left out, and of which files."""
    skipped = terminalreporter.stats.get("skipped", [])
    late = [report.nodeid.partition("::")[0] for report in skipped if VARIABLE in str(report.longrepr)]
    if late:
        files = ", ".join(dict.fromkeys(Path(name).name for name in late))
        terminalreporter.write_line(f"No time was left for {len(late)} tests or cells of {files} ({VARIABLE}).")
