"""What a reader installs is ranklab, and nothing of the authors' tools."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_wheel_holds_ranklab_with_its_types_and_no_bookkit(tmp_path):
    pytest.importorskip("setuptools", minversion="77")  # what pyproject.toml asks for; torch brings it along
    # From a copy: setuptools leaves its work beside what it builds. Without a network: its own packages are here.
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "built", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "built").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"ranklab"}
    assert "ranklab/py.typed" in names
    assert "ranklab/lab/lab.py" in names
