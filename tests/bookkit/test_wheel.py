"""What a reader installs is ranklab, and nothing of the authors' tools."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The file that `pip install .` makes and installs."""
    pytest.importorskip("setuptools", minversion="77")  # what pyproject.toml asks for; torch brings it along
    tmp_path = tmp_path_factory.mktemp("wheel")
    # From a copy: setuptools leaves its work beside what it builds. Without a network: its own packages are here.
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "built", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "built").glob("*.whl")
    return wheel


def test_the_wheel_holds_ranklab_with_its_types_and_no_bookkit(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"ranklab"}
    assert "ranklab/py.typed" in names
    assert "ranklab/lab/lab.py" in names


def test_the_installed_package_runs_in_a_folder_of_its_own(wheel, tmp_path):
    """In an environment that has what ranklab needs and nothing of this folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    home = next((tmp_path / "venv/lib").iterdir()) / "site-packages"
    (home / "needs.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", home, wheel]
    subprocess.run(install, check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    python = tmp_path / "venv/bin/python"
    where = subprocess.run([python, "-c", "import ranklab; print(ranklab.__file__)"], **options)
    assert where.stdout.strip() == str(home / "ranklab/__init__.py"), where.stderr
    shown = subprocess.run([python, "-m", "ranklab", "demo"], **options)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    steps = ["ranks 0–3   60", "ranks 0, 2, 3 wait in all_reduce for rank 1", "ranks 0–3   x is still 60"]
    places = [shown.stdout.index(step) for step in steps]
    assert places == sorted(places)
    assert [process for process in psutil.process_iter() if str(tmp_path) in _where(process)] == []


def _where(process):
    try:
        return process.cwd()
    except psutil.Error:
        return ""
