"""Claims about measured times: true on a machine that has the time to show them, and no reason to stop elsewhere."""

from __future__ import annotations

import os

from .errors import WorldError
from .live import is_recorded, tell
from .system import load

QUIET = 0.1  # share of the processors that other programs may take before a measurement says nothing

_began = load.now()


def measured(claim: bool, sentence: str) -> None:
    """Check a claim about measured times, in the notebook.

    A time says nothing where other programs take the processors, so a claim that does not hold never raises at a
    reader: one sentence says that this run did not show it. While a chapter is recorded or tested, on a machine that
    had its processors to itself since ranklab was imported, a claim that does not hold is an error.

    Args:
        claim: whether what was measured shows it. Compare times of one run, take the best of several rounds that
            alternate, and claim no more than a factor of two or so of what you saw.
        sentence: the claim in words, without a full stop: ``"a bucket of 1 MB hides more than one of 100 MB"``.

    Raises:
        AssertionError: the claim does not hold, the machine was quiet, and the chapter is recorded or tested.
        WorldError: called on a rank, where only the notebook knows which programs are the others.

    Used in every chapter that measures, first in *why-distribute*::

        ranklab.measured(slow > 2 * fast, "four messages take twice as long as one")
    """
    if "RANK" in os.environ:
        raise WorldError("The notebook judges what was measured: pull the times, and call ranklab.measured there.")
    if claim:
        return
    others = load.taken_by_others(_began, load.now())
    if is_recorded() and others < QUIET:
        raise AssertionError(f"The machine was quiet, and the run does not show that {sentence}.")
    why = f"other programs took {others:.0%} of the processors" if others >= QUIET else "this machine is another one"
    tell(f"This run does not show that {sentence}: {why}. Run the cells again when the machine has time.")
