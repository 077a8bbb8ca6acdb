"""The verdict on an answer: right, or a sentence of its own for each way to be wrong. Pure: no process.

Whoever is wrong about the rank is told about that rank first, for line and cause follow from it; then comes the cause,
then the line. No sentence names the right answer.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from .catalogue import CAUSES, FAULTS, Case
from .scene import Scene

PAR = 3
NEAR = 2  # lines
FAMILIES = {fault.cause: fault.family for fault in FAULTS}
SIGNS = {fault.cause: fault.sign for fault in FAULTS}


@dataclass(frozen=True)
class Verdict:
    """What a drill says of an answer.

    Attributes:
        right: whether rank, line and cause are right.
        words: why, or what speaks against the answer.
    """

    right: bool
    words: str

    def __str__(self) -> str:
        return f"{'Correct.' if self.right else 'Not yet.'} {self.words}"

    __repr__ = __str__


@dataclass(frozen=True)
class Answer:
    """What a reader answers.

    Attributes:
        rank: the guilty rank.
        line: the line of the program that is to blame, None where no line is.
        cause: one of the causes.
    """

    rank: object
    line: object
    cause: object


def judge(case: Case, scenes: Sequence[Scene], answer: Answer, requests: int) -> Verdict:
    """Return the verdict on an answer.

    Args:
        case: what is wrong.
        scenes: what each rank left.
        answer: what the reader says.
        requests: how many requests the reader has made.
    """
    wrong = _no_answer(case, answer) or _of_rank(case, scenes, answer)
    wrong = wrong or _of_cause(case, scenes, answer) or _of_line(case, scenes, answer)
    if wrong:
        return Verdict(False, wrong)
    count = f"{requests} request{'s' * (requests != 1)}"
    praise = {-1: "fewer than par", 0: "par", 1: f"par is {PAR}"}[(requests > PAR) - (requests < PAR)]
    also = f" Line {answer.line} is right as well." if answer.line not in (*_blamed(case, scenes)[:1], None) else ""
    return Verdict(True, f"{case.why}{also} You made {count}: {praise}.")


def _blamed(case: Case, scenes: Sequence[Scene]) -> tuple[int, ...]:
    """Return the lines that are to blame, as the stack of the guilty rank shows."""
    return case.program.blamed(scenes[case.at.guilty].lines)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _no_answer(case: Case, answer: Answer) -> str:
    """Say what is wrong with an answer that cannot be compared."""
    rank, line, cause = answer.rank, answer.line, answer.cause
    if not (isinstance(rank, int) and _whole(rank) and 0 <= rank < case.at.size):
        return f"rank is a whole number from 0 to {case.at.size - 1}, not {rank!r}."
    if cause not in CAUSES:
        close = difflib.get_close_matches(str(cause), CAUSES, 1, 0.5)
        meant = f' Did you mean "{close[0]}"?' if close else ""
        return f"{cause!r} is no cause of the list in ranklab.drill.causes.{meant}"
    lines = case.program.lines
    if line is None:
        return ""
    if not (isinstance(line, int) and _whole(line) and 1 <= line <= len(lines)):
        return f"line is a line of the program, 1 to {len(lines)}, or None where no line is wrong; it is not {line!r}."
    if not lines[line - 1].strip():
        return f"Line {line} of the program is empty."
    return ""


def _of_rank(case: Case, scenes: Sequence[Scene], answer: Answer) -> str:
    """Say why it is another rank; "" where it is not."""
    if answer.rank == case.at.guilty:
        return ""
    named = scenes[answer.rank]  # type: ignore[call-overload]
    rest = " The cause that you name is right." if answer.cause == case.fault.cause else ""
    if named.lines and answer.line not in (None, *named.lines, *_blamed(case, scenes)):
        rest = f" Line {answer.line} is not in its stack.{rest}"
    alike = [scene for scene in scenes if _alike(scene, named)]
    if named.exit_code is not None and named.exit_code > 0:
        return (
            f"Rank {named.rank} is a victim: it ended with an error because another rank was lost to it. Look for "
            f"what came before that.{rest}"
        )
    if named.exit_code is not None and named.exit_code < 0:
        return f"Rank {named.rank} was ended by an error inside the library, when it met what another rank sent.{rest}"
    waits_for_guilty = not case.fault.paired or named.rank == case.at.partner
    if waits_for_guilty and case.program.guilty and named.line in case.program.guilty + case.program.stands:
        return (
            f"Rank {named.rank} stands in that line as it should, and waits for a partner. Ask what its partner wanted "
            f"there.{rest}"
        )
    # Where the guilty rank waits in that line, too, no rank is missing there.
    if len(alike) > 1 and case.at.guilty not in [scene.rank for scene in alike]:
        return (
            f"Rank {named.rank} is a victim: it waits in line {named.line}, as {len(alike) - 1} other "
            f"rank{'s do' * (len(alike) > 2) or ' does'}. Look for the rank that is not there.{rest}"
        )
    return f"Rank {named.rank} waits for somebody else. Look for the rank that it waits for.{rest}"


def _alike(one: Scene, other: Scene) -> bool:
    return one.exit_code == other.exit_code and one.line == other.line


def _of_cause(case: Case, scenes: Sequence[Scene], answer: Answer) -> str:
    """Say what speaks against the cause; "" where it is right."""
    cause = str(answer.cause)
    if cause == case.fault.cause:
        return ""
    place = " and so is the line" if answer.line in _blamed(case, scenes) else ""
    if FAMILIES[cause] == case.fault.family:
        return f"Rank {answer.rank} is right{place}, and the cause is close, but another one. {SIGNS[cause]}"
    if FAMILIES[cause] == "outside":
        return f"Rank {answer.rank} is right{place}, but nothing came from outside. {SIGNS[cause]}"
    if case.fault.family == "outside":
        return f"Rank {answer.rank} is right, but no part of the program explains its end. {SIGNS[cause]}"
    return f"Rank {answer.rank} is right{place}, but the cause is of another kind. {SIGNS[cause]}"


def _of_line(case: Case, scenes: Sequence[Scene], answer: Answer) -> str:
    """Say why it is another line; "" where it is right."""
    guilty, line = _blamed(case, scenes), answer.line
    if not guilty:
        if line is None:
            return ""
        return f"Rank and cause are right, but line {line} is not to blame: no line of the program is. Say line=None."
    if line is None:
        return "Rank and cause are right, but a line of the program lets it happen. Name it."
    if line in guilty:
        return ""
    number = int(str(line))
    own = scenes[case.at.guilty]
    if number in own.lines:
        return (
            f"Rank and cause are right. Line {line} is where rank {own.rank} stands now; name the line that sent it "
            "there."
        )
    if number in case.program.stands:
        if not own.lines:  # the rank has ended, so no stack shows where it was
            return f"Rank and cause are right. Line {line} is where the fault struck; name the line that led to it."
        return f"Rank and cause are right, but rank {own.rank} did not reach line {line} in its last step."
    if any(number in scene.lines for scene in scenes):
        return f"Rank and cause are right. Line {line} is where the others wait, and they are right to be there."
    if any(abs(number - each) <= NEAR for each in guilty):
        return f"Rank and cause are right, and line {line} is close: the line to blame is at most {NEAR} lines away."
    return f"Rank and cause are right, but line {line} does the same on every rank."
