"""A notebook with ranks for each world size, and the table of what each fault cost."""

import os
from typing import NamedTuple

import pytest
from faults_catalogue import CPUS, GPUS
from support import Notebook

os.environ["IPP_NONINTERACTIVE"] = "1"
COST = "what a fault cost"


class Figures(NamedTuple):
    """What one fault cost on one world size, seconds."""

    fault: str
    ranks: int
    report: float
    usable: float
    kept: str


@pytest.fixture
def figures(record_property):
    """Adds a line to the table that is printed after the tests; it travels with the test's report from any worker."""
    return lambda *line: record_property(COST, line)


@pytest.fixture(scope="module")
def backend(request):
    """The backend of the ranks, by its name: the one for CPUs, or what a test says."""
    return getattr(request, "param", CPUS)


@pytest.fixture(scope="module", params=[3], ids=lambda size: f"{size} ranks")
def notebook(request, backend):
    """A notebook with three ranks, or as many as a test says, shared by the faults of a module."""
    notebook = Notebook()
    notebook.size, notebook.backend = request.param, backend
    assert notebook.run("import ranklab").error is None
    asked = f', backend="{backend}"' if backend == GPUS else ""
    started = notebook.run(f"world = ranklab.start({request.param}, timeout=1.0{asked})")
    assert started.error is None, started.error
    yield notebook
    notebook.run("world.stop()")


def pytest_collection_modifyitems(items):
    """Try each fault on the backends and the numbers of ranks that it names."""

    def wanted(item):
        given = getattr(item, "callspec", None)
        fault = given and given.params.get("fault")
        return not fault or (
            given.params["notebook"] in fault.sizes and given.params.get("backend", CPUS) in fault.backends
        )

    items[:] = filter(wanted, items)


def pytest_terminal_summary(terminalreporter):
    """Print what every fault cost."""
    passed = terminalreporter.stats.get("passed", [])
    lines = sorted(Figures(*line) for report in passed for name, line in report.user_properties if name == COST)
    if not lines:
        return
    write = terminalreporter.write_line
    terminalreporter.section("faults: seconds to the report (the deadline is 1 s) and from there to a right all_reduce")
    write(f"{'fault':<38}{'ranks':>6}{'report':>8}{'usable':>8}  variables kept")
    for figure in lines:
        write(f"{figure.fault:<38}{figure.ranks:>6}{figure.report:>8.2f}{figure.usable:>8.2f}  {figure.kept}")
