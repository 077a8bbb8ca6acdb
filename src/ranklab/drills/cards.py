"""A drill on paper, for a room without computers: what may be asked, and the solution on the last card."""

from __future__ import annotations

from collections.abc import Sequence

from .catalogue import Case
from .scene import Scene


def cards(case: Case, scenes: Sequence[Scene]) -> str:
    """Return all cards of a drill as one text; whoever leads the game hands them out on request.

    Args:
        case: what is wrong.
        scenes: what each rank left.
    """
    told = [("program", case.program.numbered())]
    for what in "log", "stacks", "dump":
        for scene in scenes:
            text = scene.log.rstrip() if what == "log" else getattr(scene, what)()
            told.append((f"{what}({scene.rank})", text or "(nothing)"))
    lines = " or ".join(map(str, case.program.blamed(scenes[case.at.guilty].lines))) or "None"
    solution = f"rank {case.at.guilty}, line {lines}, cause: {case.fault.cause}\n{case.why}"
    told.append(("solution, for whoever leads the game", solution))
    return "\n\n".join(f"--- drill {case.seed} · {name} ---\n{text}" for name, text in told)
