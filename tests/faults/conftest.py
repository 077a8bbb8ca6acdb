"""A notebook with ranks for each world size, and the table of what each fault cost."""

import os
from dataclasses import dataclass

import pytest
from support import Notebook

os.environ["IPP_NONINTERACTIVE"] = "1"


@dataclass
class Figure:
    """What one fault cost on one world size, seconds."""

    fault: str
    ranks: int
    report: float
    usable: float
    kept: str


FIGURES: list[Figure] = []


@pytest.fixture(scope="session")
def figures():
    """Adds a line to the table that is printed after the tests."""
    return lambda *line: FIGURES.append(Figure(*line))


@pytest.fixture(scope="module", params=[3], ids=lambda size: f"{size} ranks")
def notebook(request):
    """A notebook with three ranks, or as many as a test says, shared by the faults of a module."""
    notebook = Notebook()
    notebook.size = request.param
    assert notebook.run("import ranklab").error is None
    started = notebook.run(f"world = ranklab.start({request.param}, timeout=1.0)")
    assert started.error is None, started.error
    yield notebook
    notebook.run("world.stop()")


def pytest_collection_modifyitems(items):
    """Try each fault on the numbers of ranks that it names."""

    def wanted(item):
        given = getattr(item, "callspec", None)
        fault = given and given.params.get("fault")
        return not fault or given.params["notebook"] in fault.sizes

    items[:] = filter(wanted, items)


def pytest_terminal_summary(terminalreporter):
    """Print what every fault cost."""
    if not FIGURES:
        return
    write = terminalreporter.write_line
    terminalreporter.section("faults: seconds to the report (the deadline is 1 s) and from there to a right all_reduce")
    write(f"{'fault':<38}{'ranks':>6}{'report':>8}{'usable':>8}  variables kept")
    for figure in sorted(FIGURES, key=lambda figure: (figure.fault, figure.ranks)):
        write(f"{figure.fault:<38}{figure.ranks:>6}{figure.report:>8.2f}{figure.usable:>8.2f}  {figure.kept}")
