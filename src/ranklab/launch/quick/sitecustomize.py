"""Every Python of a launch reads this first: while torch is imported, the garbage collector rests.

Importing torch makes half a million objects that all stay. Python's collector walks through them again and again while
they are made, and once more at the end of the program: a fifth of the short life of a rank. Here it begins when torch
has been imported, and leaves what torch defines alone. Nothing else is changed. The page of Python's ``site`` module
explains what a ``sitecustomize`` is; one that this file hides is read as well.
"""

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class _ImportOfTorch(importlib.abc.MetaPathFinder):
    """Finds torch as Python would, and lets the collector rest while it is imported."""

    def find_spec(self, name, path=None, target=None):
        """Return how torch is to be loaded; None for every other module."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            own = vars(spec.loader)  # this one object is changed, until it has done its work
            own["exec_module"] = lambda module: _at_rest(own, module)
        return spec


def _at_rest(own, module):
    was_on = gc.isenabled()
    gc.disable()
    del own["exec_module"]
    try:
        module.__spec__.loader.exec_module(module)
        gc.freeze()
    finally:
        if was_on:
            gc.enable()


sys.meta_path.insert(0, _ImportOfTorch())
sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
hidden = importlib.machinery.PathFinder.find_spec("sitecustomize")
if hidden is not None and hidden.loader is not None:
    sys.modules["sitecustomize"] = importlib.util.module_from_spec(hidden)
    hidden.loader.exec_module(sys.modules["sitecustomize"])
