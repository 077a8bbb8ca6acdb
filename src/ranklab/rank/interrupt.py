"""SIGINT in a rank: it ends the reader's code, and nothing else.

Python turns the signal into ``KeyboardInterrupt`` wherever the main thread happens to be. In ipykernel that can be the
line that sends a reply: the code has finished, the reply is lost, and the notebook waits for it for ever. Runs inside
a rank. Standard library only.
"""

from __future__ import annotations

import signal
from types import FrameType

from .trace import CELL_MARK

# ipyparallel runs what ``apply`` has sent as a line of code of its own: do_apply in ipyparallel/engine/kernel.py.
APPLY = "do_apply"


def guard(kernel) -> None:
    """Let an interrupt reach the reader's code only; called in the main thread.

    Args:
        kernel: the rank's kernel, which would otherwise set Python's own handler before every message.
    """
    signal.signal(signal.SIGINT, _interrupt)
    kernel.pre_handler_hook = kernel.post_handler_hook = lambda: None


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _in_readers_code(frame):
        signal.default_int_handler(number, frame)


def _in_readers_code(frame: FrameType | None) -> bool:
    while frame is not None:
        name = frame.f_code.co_filename
        applied = name == "<string>" and frame.f_back is not None and frame.f_back.f_code.co_name == APPLY
        if CELL_MARK in name or applied:
            return True
        frame = frame.f_back
    return False
