"""What a rule is, what it finds, and the table of all rules."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One breach: where, which rule, what was found, and how to mend it."""

    place: str
    rule: str
    found: str
    mend: str

    def __str__(self):
        return f"{self.place}: {self.found}: {self.mend}. [{self.rule}]"


@dataclass(frozen=True)
class Rule:
    """A name to refer to, what an author does about a breach, and the function that looks."""

    name: str
    mend: str
    look: Callable


RULES: list[Rule] = []


def rule(name, mend):
    """Enter a function into the table. It yields ``(index of cell or None, found[, mend])``."""

    def enter(look):
        RULES.append(Rule(name, mend, look))
        return look

    return enter
