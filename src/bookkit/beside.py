"""The same work on many things, side by side: in as many processes as this machine has cores."""

import signal
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager

from bookkit.leash import follow_parent
from bookkit.machine import cores


@contextmanager
def beside(work, things):
    """Begin the work on all things, and yield what goes through ``(number of the thing, what work returned)``.

    They come as they end. If one raises, or the caller does, what has not begun is left out. The processes begin before
    this returns, so that a caller may start threads within the block.

    Args:
        work: a function of a module, or a partial of one, of one thing; it and what it returns are pickled.
        things: a list.
    """
    pool = ProcessPoolExecutor(max(1, min(cores(), len(things))), initializer=_leave_signals)
    try:
        numbers = {pool.submit(work, thing): number for number, thing in enumerate(things)}
        yield ((numbers[future], future.result()) for future in as_completed(numbers))
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_signals():
    """Ctrl-C reaches every process of a terminal; it is the caller's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    follow_parent()
