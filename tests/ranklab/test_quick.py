"""Programs of a launch import torch while the collector rests, and nothing else about them is changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ranklab.launch.agents import QUICK

TORCH = """
import gc
collecting_meanwhile = gc.isenabled()
kept = [[] for _ in range(100_000)]
"""
PROGRAM = """
import gc, sys
before = gc.get_freeze_count()
import {module} as imported
print(imported.collecting_meanwhile, gc.isenabled(), gc.get_freeze_count() - before > 100_000)
"""


def run(folder: Path, program: str, *paths: Path | str) -> list[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run([sys.executable, "-c", program], env=environment, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.fixture
def folder(tmp_path):
    for name in "torch", "other":
        (tmp_path / f"{name}.py").write_text(TORCH)
    return tmp_path


def test_the_collector_rests_while_torch_is_imported_and_leaves_alone_what_it_has_made(folder):
    assert run(folder, PROGRAM.format(module="torch"), QUICK, folder) == ["False", "True", "True"]


def test_any_other_import_is_as_it_was(folder):
    assert run(folder, PROGRAM.format(module="other"), QUICK, folder) == ["True", "True", "False"]


def test_without_it_the_collector_looks_meanwhile(folder):
    assert run(folder, PROGRAM.format(module="torch"), folder) == ["True", "True", "False"]


def test_a_program_that_has_turned_the_collector_off_finds_it_off(folder):
    program = "import gc; gc.disable(); import torch; print(gc.isenabled())"
    assert run(folder, program, QUICK, folder) == ["False"]


def test_an_import_that_fails_turns_it_on_again(folder):
    (folder / "torch.py").write_text("raise ValueError")
    program = "import gc\ntry: import torch\nexcept ValueError: print(gc.isenabled())"
    assert run(folder, program, QUICK, folder) == ["True"]


def test_where_there_is_no_torch_the_error_is_pythons(tmp_path):
    program = """
import sys
sys.path[:] = sys.path[:1]
try: import torch
except ModuleNotFoundError as error: print(error.name)
"""
    assert run(tmp_path, program, QUICK) == ["torch"]


def test_it_leaves_no_trace_in_the_path_and_reads_the_sitecustomize_that_it_hides(folder):
    (folder / "sitecustomize.py").write_text("import builtins; builtins.theirs = True")
    program = f"import sys, sitecustomize; print(theirs, {QUICK!r} in sys.path, sitecustomize.__file__)"
    assert run(folder, program, QUICK, folder) == ["True", "False", str(folder / "sitecustomize.py")]
