"""torchrun, quicker: without the walks of Python's collector over all that torch defines.

``python -P quick.py MODULE OPTIONS …`` does what ``python -m MODULE OPTIONS …`` does. Importing torch makes half a
million objects that all stay; looking through them while they are imported, and again at the end, is a seventh of a
short launch of two ranks. The ranks that torchrun starts are processes of their own, and nothing is changed there.
"""

import gc
import importlib
import sys


def main(name: str) -> None:
    """Import a launcher of torch and run it; its options are what is left of ``sys.argv``."""
    gc.disable()
    module = importlib.import_module(name)
    gc.freeze()
    gc.enable()
    sys.argv[0] = str(module.__file__)  # its own messages name the program by it
    module.main()


if __name__ == "__main__":
    main(sys.argv.pop(1))
