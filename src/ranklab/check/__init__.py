"""Graders: they run a reader's answer on the reader's ranks and say what is wrong.

A grader compares with the one-process answer, prints one sentence and raises nothing, so that a notebook with an
unsolved exercise still runs to its end. The graders of a chapter stand in ``check/<part>/<chapter>.py``, decorated with
:func:`ranklab.check.verdict.grader`; they are found there, and nothing needs to be added here.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

from .verdict import find_offered

_offered = find_offered([import_module(module.name) for module in walk_packages(__path__, f"{__name__}.")])
__all__ = sorted(_offered)
globals().update(_offered)


def __dir__() -> list[str]:
    return __all__
