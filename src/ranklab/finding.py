"""What a check of the doctor has found. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARNING, PROBLEM = "ok", "warning", "problem"
LOOK_AGAIN = "Look again when the machine has time; `top` shows what runs."


@dataclass(frozen=True)
class Finding:
    """What one check has found.

    Attributes:
        check: what was looked at.
        state: "ok", "warning" (chapters run) or "problem" (a chapter would fail).
        said: what is the case, one sentence.
        fix: what to do, "" where nothing is to be done.
    """

    check: str
    state: str
    said: str
    fix: str = ""
