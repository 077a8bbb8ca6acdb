"""A notebook with ranks, shared by the tests of a module."""

import os
import shutil
import tempfile
from pathlib import Path

import kept
import pytest
from launches import mark, marked
from support import Notebook, answer, started
from users import ordinary_user

os.environ["IPP_NONINTERACTIVE"] = "1"
# Functions of a test that are sent to ranks come from modules that import support.py.
TESTS = str(Path(__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="session")
def bare_notebook():
    """A notebook that has imported ranklab and started nothing, or has stopped what it started."""
    notebook = Notebook()
    assert notebook.run("import ranklab").error is None
    yield notebook
    kept.end()


@pytest.fixture(scope="module")
def notebook(bare_notebook, request):
    """A notebook with four ranks, shared by the tests of a module; modules of graders hand theirs on."""
    if not kept.hands_on(request.path):
        with started(bare_notebook, "ranklab.start(4)") as ready:
            yield ready
        return
    kept.take(bare_notebook)
    yield bare_notebook
    kept.keep(bare_notebook)


@pytest.fixture
def graded(notebook, capsys):
    """What a grader says about an answer, given as the arguments and the body of a function."""

    def say(grader, arguments, body):
        grader(answer(arguments, body))
        return capsys.readouterr().out.strip()

    return say


@pytest.fixture(params=["this user", "ordinary user"])
def user(request):
    """The command in front of a program that makes it this user's, or an ordinary user's."""
    if request.param == "this user":
        return []
    if os.geteuid() != 0:
        pytest.skip("this user is an ordinary user")
    return ordinary_user()


@pytest.fixture
def folder(tmp_path_factory):
    """A folder that an ordinary user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="hosts-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a shell script in front of the programs of this machine."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]))
    (tmp_path / "bin").mkdir()

    def put(name: str, script: str) -> None:
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o700)

    return put


@pytest.fixture
def gpus_on_this_machine(program):
    """Play a machine with GPUs, given their UUIDs: what nvidia-smi says of them."""

    def play(*names: str) -> None:
        lines = [f"echo 'GPU {number}: NVIDIA H200 (UUID: {name})'" for number, name in enumerate(names)]
        program("nvidia-smi", "\n".join(lines))

    return play


@pytest.fixture
def leaves_no_process(monkeypatch):
    """Every launch of the test is marked, and none of its processes is left."""
    monkeypatch.setenv("IPP_NONINTERACTIVE", "1")
    monkeypatch.setenv("MARK", mark())
    yield
    assert marked("MARK", os.environ["MARK"]) == []
