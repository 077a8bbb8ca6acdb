"""The Python packages that some cells need beside requirements.txt: which, how they are installed, and what lacks.

The one table of them, as ``ranklab.programs`` is of the system's programs. The comparison of chapters (bookkit), the
environment's maker and the cells themselves read it. Their versions stand in the file of requirements that a row names.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """A package that is optional.

    Attributes:
        name: what pip calls it, and what Python imports.
        tag: cells that import it have this tag.
        requirements: the file that pins it.
        wish: what is added to ``make environment`` to get it.
    """

    name: str
    tag: str
    requirements: str
    wish: str


FRAMEWORKS = "needs-frameworks", "requirements-frameworks.txt", "FRAMEWORKS=1"
OPTIONAL = tuple(Package(name, *FRAMEWORKS) for name in ("accelerate", "lightning", "transformers"))


def absent(tag: str) -> list[Package]:
    """Return the packages of a tag that this Python does not find; none of them is imported.

    Args:
        tag: of cells, for example ``"needs-frameworks"``.

    Raises:
        KeyError: no package has this tag.
    """
    asked = [package for package in OPTIONAL if package.tag == tag]
    if not asked:
        raise KeyError(tag)
    return [package for package in asked if importlib.util.find_spec(package.name) is None]


def without(tag: str) -> str:
    """Say in one sentence which packages of a tag are not here, and what installs them; "" where all are.

    Args:
        tag: of cells, for example ``"needs-frameworks"``.

    A cell that imports such a package asks first: ``if why := without("needs-frameworks"): print(why)``.
    """
    lacking = absent(tag)
    if not lacking:
        return ""
    *most, last = [package.name for package in lacking]
    names = f"{', '.join(most)} and {last}" if most else last
    be = "are" if most else "is"
    return f"{names} {be} not installed here: make environment {lacking[0].wish}."
