"""SIGINT in a rank: it ends the reader's code, and nothing else.

Python turns the signal into ``KeyboardInterrupt`` wherever the main thread happens to be. In ipykernel that can be the
line that sends a reply: the code has finished, the reply is lost, and the notebook waits for it for ever. In the middle
of an import it leaves half a library behind, which no later import makes whole: ``import torch._dynamo`` takes a second
of a processor, and on a busy machine ten. Runs inside a rank. Standard library only.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

from .trace import CELL_MARK, INSTALLED

# ipyparallel runs what ``apply`` has sent as a line of code of its own: do_apply in ipyparallel/engine/kernel.py.
APPLY = "do_apply"
IMPORT = "<frozen importlib"  # begins the file name of every function of Python's import
LOAD = "_load_unlocked"  # the function there in which a module runs; its variable ``spec`` says which
AGAIN = 0.05  # seconds until an interrupt that came during an import is tried again

_broken: set[str] = set()  # modules whose import an interrupt has ended
_message = 0  # counts what the rank was asked
_postponed: int | None = None  # the message whose interrupt waits for an import to end
_retried: int | None = None  # the message that is interrupted once more


def guard(kernel) -> None:
    """Let an interrupt reach the reader's code only; called in the main thread.

    Args:
        kernel: the rank's kernel, which would otherwise set Python's own handler before every message.
    """
    signal.signal(signal.SIGINT, _interrupt)
    kernel.pre_handler_hook = lambda: None
    kernel.post_handler_hook = _answered


def _answered() -> None:
    global _message
    _message += 1  # an interrupt that still waits was not meant for what comes next
    forget_broken()


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _retried
    meant, _retried = _message if _retried is None else _retried, None
    if meant != _message or not in_readers_code(frame):
        return
    if importing_a_library(frame):
        _try_again()
        return
    note_broken(frame)
    signal.default_int_handler(number, frame)


def _try_again() -> None:
    """Send the interrupt once more, a moment later; not with a timer of the system's, which the reader may use."""
    global _postponed
    if _postponed is None:
        _postponed = _message
        # Not threading.Thread: its locks may be held by the very code that the signal has interrupted.
        _thread.start_new_thread(_again, ())


def _again() -> None:
    global _postponed, _retried
    time.sleep(AGAIN)
    _retried, _postponed = _postponed, None
    signal_main_thread(signal.SIGINT)


def signal_main_thread(number: int) -> None:
    """Send a signal to the main thread: in another, or by _thread.interrupt_main, it would not end a sleep there.

    Args:
        number: of the signal.
    """
    main = threading.main_thread().ident
    assert main is not None  # only a thread that has not started has no number
    signal.pthread_kill(main, number)


def in_readers_code(frame: FrameType | None) -> bool:
    """Say whether a cell, or what a grader has sent, is running.

    Args:
        frame: the innermost frame of the main thread.
    """
    for each in _outwards(frame):
        name = each.f_code.co_filename
        applied = name == "<string>" and each.f_back is not None and each.f_back.f_code.co_name == APPLY
        if CELL_MARK in name or applied:
            return True
    return False


def importing_a_library(frame: FrameType | None) -> bool:
    """Say whether an import of an installed module is under way; a file of the reader's own may be interrupted.

    Args:
        frame: the innermost frame of a thread.
    """
    module, within = None, False  # the module that runs innermost, and whether we look at a function of the import
    for each in _outwards(frame):
        name, before = each.f_code.co_filename, within
        within = name.startswith(IMPORT)
        if within and not before and (module is None or INSTALLED.match(module)):
            return True  # the first module that would be left half loaded is no file of the reader's
        if before and not within:
            module = None
        if each.f_code.co_name == "<module>":
            module = name
    return False


def note_broken(frame: FrameType | None) -> None:
    """Remember which modules are half loaded, before an exception ends their import; see :func:`forget_broken`.

    Args:
        frame: the innermost frame of a thread.
    """
    for each in _outwards(frame):
        if each.f_code.co_filename.startswith(IMPORT) and each.f_code.co_name == LOAD:
            with contextlib.suppress(KeyError, AttributeError):
                _broken.add(each.f_locals["spec"].name)


def forget_broken() -> None:
    """Forget what a half loaded module had imported of itself, so that its next import starts afresh.

    Python itself forgets the module whose import failed, but not its parts that were complete: imported again, it
    would lack them as attributes ("module 'sympy' has no attribute 'printing'").
    """
    while _broken:
        package = _broken.pop()
        if package in sys.modules and not _is_half_loaded(package):
            continue  # imported again since
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]


def _is_half_loaded(name: str) -> bool:
    return bool(getattr(getattr(sys.modules[name], "__spec__", None), "_initializing", False))


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
