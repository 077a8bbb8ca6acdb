"""A notebook with ranks, shared by the tests of a module."""

import os
from pathlib import Path

import pytest
from support import Notebook

os.environ["IPP_NONINTERACTIVE"] = "1"
# Functions of a test that are sent to ranks come from modules that import support.py.
TESTS = str(Path(__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="session")
def bare_notebook():
    """A notebook that has imported ranklab and started nothing, or has stopped what it started."""
    notebook = Notebook()
    assert notebook.run("import ranklab").error is None
    return notebook


@pytest.fixture(scope="module")
def notebook(bare_notebook):
    """A notebook with four ranks, shared by the tests of a module."""
    started = bare_notebook.run("world = ranklab.start(4)")
    assert started.error is None, started.error
    yield bare_notebook
    bare_notebook.run("world.stop()")
