"""What a rule is, what it finds, and the table of all rules."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One breach: where, which rule, what was found, and how to fix it."""

    place: str
    rule: str
    found: str
    fix: str

    def __str__(self):
        return f"{self.place}: {self.found}: {self.fix}. [{self.rule}]"


@dataclass(frozen=True)
class Rule:
    """A name to refer to, what an author does about a breach, and the function that looks."""

    name: str
    fix: str
    look: Callable


RULES: list[Rule] = []


def rule(name, fix):
    """Enter a function into the table. It yields ``(index of cell or None, found[, fix])``."""

    def enter(look):
        RULES.append(Rule(name, fix, look))
        return look

    return enter
