"""A clock for a run that somebody else ends: chapters that it would come too late for are left out, and named.

Where a whole run may take so long and no longer, as in ``.ci/run``, a machine of half the usual speed would be stopped
in the middle, and nobody would learn anything. With ``BOOKKIT_UNTIL``, in seconds since 1970, no chapter is begun after
that moment: each is skipped with a sentence, and one that has begun is compared to its end. Without it nothing is left
out. A plugin: ``pytest -p bookkit.until --nbval``.
"""

import os
import time
from pathlib import Path

import pytest

VARIABLE = "BOOKKIT_UNTIL"
_begun: set[Path] = set()  # the chapters


@pytest.hookimpl(tryfirst=True)  # before the chapter's kernel is started
def pytest_runtest_setup(item):
    """Leave out the cells of a chapter that has not begun in time; nbval calls its cells items."""
    until = os.environ.get(VARIABLE)
    if not until or not hasattr(item, "cell"):
        return
    chapter = item.path
    if chapter not in _begun and time.time() > float(until):
        pytest.skip(f"no time was left for {chapter.stem}, which was not compared ({VARIABLE})")
    _begun.add(chapter)
