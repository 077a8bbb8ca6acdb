"""Every test gets its markers from what it starts, and a guard sees that it starts nothing else."""

import collections
import gc
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

import kept
import pytest
from guard import sitecustomize as guard
from starts import always, markers, seconds

from bookkit.machine import places

TESTS = Path(__file__).parent


def pytest_configure(config):
    """Let the guard look at what this process starts, and those below it."""
    handle, caught = tempfile.mkstemp(prefix="ranklab-tests-")
    os.close(handle)
    config.add_cleanup(lambda: os.unlink(caught))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background job; what we start would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ[guard.CAUGHT], os.environ[guard.MAY] = caught, ""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS / "guard"), os.environ.get("PYTHONPATH")]))


def pytest_ignore_collect(collection_path, config):
    """Leave out a file whose every test ``-m`` leaves out: to import it and to make its tests takes its time."""
    out = re.findall(r"\bnot (\w+)", config.option.markexpr) if "or" not in config.option.markexpr.split() else []
    if out and collection_path.name.startswith("test_") and always(collection_path, TESTS) & set(out):
        return True
    return None  # others may say


@pytest.fixture(scope="module", autouse=True)
def nothing_is_kept(request):
    """Stop the ranks that graders have handed on before the first test of another module."""
    if not kept.hands_on(request.path):
        kept.end()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark each test before pytest selects by ``-m``; then let workers begin with the files that take longest."""

    def known(item):
        return item.path.relative_to(TESTS).as_posix(), getattr(item, "originalname", item.name), item.fixturenames

    for item in items:
        for marker in sorted(markers(*known(item))):
            item.add_marker(marker)
    result = yield
    if "PYTEST_XDIST_WORKER" in os.environ:
        takes = collections.Counter()
        for item in items:
            takes[item.path] += seconds(*known(item))
        graders = [path for path in takes if kept.hands_on(path)]  # one after another, for they hand on their ranks
        takes.update(dict.fromkeys(graders, 15.0))
        items.sort(key=lambda item: -takes[item.path])  # the tests of a file stay together and in their order
    return result


def pytest_collection_finish():
    """Let torch use one core of this worker's, for the others have work too."""
    gc.freeze()  # what was imported and collected stays: nobody has to look through it again
    if "PYTEST_XDIST_WORKER" in os.environ and "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """With ``-n auto`` more tests run at once than there are cores: they wait for much of their time. A browser's and
    those without ranks do not, and each worker imports torch and collects all tests for itself: eight seconds.
    """
    few = config.option.markexpr == "site" or "not ranks" in config.option.markexpr
    return places() + (1 if few else 2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Tell the guard which markers the test has."""
    os.environ[guard.MAY] = " ".join(marker.name for marker in item.iter_markers())
    try:
        return (yield)
    finally:
        os.environ[guard.MAY] = ""


def pytest_runtest_setup(item):
    """Skip what needs hosts where this machine allows none."""
    if item.get_closest_marker("hosts"):
        from hosting import why_not

        if reason := why_not():
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a test that swallowed what the guard said."""
    try:
        return (yield)
    finally:
        caught = Path(os.environ[guard.CAUGHT])
        if said := caught.read_text():
            caught.write_text("")
            pytest.fail(said, pytrace=False)
