"""All faults, and which one a seed draws."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from . import calls, others
from .fault import Fault, Situation, rows
from .program import ROWS, STEPS, Program, write

FAULTS: tuple[Fault, ...] = calls.FAULTS + others.FAULTS
CAUSES: tuple[str, ...] = tuple(sorted(fault.cause for fault in FAULTS))
SIZE = 4


class Case:
    """What one seed draws: a fault, the rank and the step, and the program.

    As many seeds in a row as there are faults, from a multiple of their number on, draw each fault once.

    Args:
        seed: a whole number from 0.

    Attributes:
        fault: what is wrong.
        at: the guilty rank and the step.
        decoy: another fault, whose lines are in the program and do no harm.
        program: what every rank runs.
    """

    def __init__(self, seed: int) -> None:
        order = list(FAULTS)
        random.Random(seed // len(FAULTS)).shuffle(order)
        draw = random.Random(seed)
        self.seed, self.fault = seed, order[seed % len(FAULTS)]
        self.at = Situation(draw.randrange(SIZE), draw.randrange(1, STEPS - 1), SIZE)
        numbers = {"RANK": str(self.at.guilty), "STEP": str(self.at.step)}
        lines = {slot: _filled(text, numbers) for slot, text in self.fault.lines.items()}
        # A decoy that looks at the same data as the fault would strike too.
        self.decoy = draw.choice([each for each in FAULTS if each.decoy and each.part is not self.fault.part])
        self.program: Program = write(lines, self.fault.stands, self.decoy.lines, seed)

    @property
    def why(self) -> str:
        """What happened, a sentence or two."""
        line = self.program.guilty[0] if self.program.guilty else 0
        return self.fault.why.format(rank=self.at.guilty, step=self.at.step, line=line)

    def part(self, rank: int) -> dict[str, Any]:
        """Return what the file of a rank holds."""
        nobody = replace(self.at, guilty=-1)
        return {"rows": rows(ROWS * STEPS)} | self.decoy.part(rank, nobody) | self.fault.part(rank, self.at)

    def outside(self) -> dict[str, Any]:
        """Return what happens from outside: to which rank, after which text of its log, which signal."""
        if not self.fault.outside:
            return {}
        return {"rank": self.at.guilty, "after": f"step {self.at.step}:", "signal": int(self.fault.outside)}


def _filled(text: str, numbers: dict[str, str]) -> str:
    for name, number in numbers.items():
        text = text.replace(f"rank == {name}", f"rank == {number}").replace(f"step == {name}", f"step == {number}")
    return text
