"""An environment that differs from this one in one package: a folder of its own, which this one lies under."""

import site
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from bookkit.environment import python_of
from bookkit.errors import BookError

BELOW = "book-below.pth"


def overlay(folder, wanted):
    """Make or refresh an environment in which one package is another than here, and return its interpreter.

    All else is this environment's own, so what a chapter prints differently there is due to that package and to what
    it brings.

    Args:
        folder: where it is or shall be.
        wanted: what pip is to install: ``torch==2.11.0``, or ``torch`` for the newest that it finds.

    Raises:
        BookError: pip found none.
    """
    folder = Path(folder)
    python = python_of(folder)
    if not Path(python).exists():
        venv.create(folder, with_pip=True, symlinks=True)
    # Its own packages come first. addsitedir also follows the links of packages that are installed from a folder.
    lines = [f"import site; site.addsitedir({below!r})\n" for below in site.getsitepackages()]
    own = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    Path(own, BELOW).write_text("".join(lines), encoding="utf-8")
    package, _, version = wanted.partition("==")
    if version and version_in(python, package) == version:
        return python  # made by an earlier run
    command = [python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--upgrade", wanted]
    if subprocess.call(command):
        raise BookError(f"pip could not install {wanted} into {folder}; its last lines say why")
    return python


def version_in(python, package):
    """The version of a package in an environment, without what says how it was built: 2.11.0, not 2.11.0+cpu.

    Args:
        python: the environment's interpreter; the running one where None.
        package: its name.
    """
    asked = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    said = subprocess.run([python or sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    return said.strip().partition("+")[0]


def built_for(python):
    """What the torch of an environment was built for: "CUDA 13.0", "ROCm 7.0" or "CPUs only".

    Args:
        python: the environment's interpreter; the running one where None.
    """
    asked = (
        "import torch.version as v; print(f'CUDA {v.cuda}' if v.cuda else f'ROCm {v.hip}' if v.hip else 'CPUs only')"
    )
    said = subprocess.run([python or sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[-1]
