"""``ranklab.drill``: a job that stands still, what can be asked of it, and the answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import WorldError
from .catalogue import CAUSES, SIZE, Case

if TYPE_CHECKING:
    from .scene import Scene
    from .verdict import Verdict

SEEDS = 10_000


class Text(str):
    """Text that a notebook shows as it stands, line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class Drill:
    """One drill: a job of four ranks that stood still or broke, as it was when nothing moved any more.

    Nothing runs any more. Each of :meth:`log`, :meth:`stacks`, :meth:`dump` and :meth:`program` is a request and is
    counted, the same one twice only once. Its display shows the last line of each rank's log, which is free.

    Attributes:
        seed: start the same drill with it again.
        size: how many ranks there are.
        requests: how many requests were made.
        answers: how many answers were given.
        solved: whether an answer was right.

    Used in the chapter *drill*.
    """

    def __init__(self, case: Case, scenes: Sequence[Scene]) -> None:
        self._case, self._scenes = case, scenes
        self._asked: set[tuple[str, int]] = set()
        self.seed, self.size = case.seed, case.at.size
        self.answers, self.solved = 0, False

    @property
    def requests(self) -> int:
        """How many requests were made, the same one twice counted once."""
        return len(self._asked)

    def log(self, rank: int) -> Text:
        """Return all that a rank printed, errors included. Costs one request."""
        return Text(self._of("log", rank).log.rstrip("\n") or "(nothing)")

    def stacks(self, rank: int) -> Text:
        """Return where a rank's threads stand in the program, as ``py-spy dump`` tells. Costs one request."""
        return Text(self._of("stacks", rank).stacks())

    def dump(self, rank: int) -> Text:
        """Return the latest collectives in a rank's flight recorder: number, operation, shapes, type.

        Sends and receives are not in it. Costs one request.
        """
        return Text(self._of("dump", rank).dump())

    def program(self) -> Text:
        """Return the program that all ranks run, with line numbers. Costs one request."""
        self._asked.add(("program", 0))
        return Text(self._case.program.numbered())

    def answer(self, *, rank: int, line: int | None, cause: str) -> Verdict:
        """Grade an answer.

        Args:
            rank: the rank that is to blame; those that wait for it are not.
            line: the line of the program that lets it happen, or in which it happens; None where no line is wrong.
            cause: one of ``ranklab.drill.causes``.

        Returns:
            The verdict. Its ``right`` says whether all three are right; printed, it says why, or what speaks against
            the answer.
        """
        from .verdict import Answer, judge

        self.answers += 1
        verdict = judge(self._case, self._scenes, Answer(rank, line, cause), self.requests)
        self.solved = self.solved or verdict.right
        return verdict

    def cards(self) -> Text:
        """Return everything that can be asked, and the solution, to print for a room without computers."""
        from .cards import cards

        return Text(cards(self._case, self._scenes))

    def _of(self, what: str, rank: int) -> Scene:
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < self.size:
            raise WorldError(f"This job has ranks 0 to {self.size - 1}, and {rank!r} is none of them.")
        self._asked.add((what, rank))
        return self._scenes[rank]

    def __repr__(self) -> str:
        head = f"Drill {self.seed}: a job of {self.size} ranks makes no progress. The last line of each log:"
        lines = [f"  rank {scene.rank}   {scene.last_line[:75]}" for scene in self._scenes]
        return "\n".join([head, *lines])


class Drills:
    """Start a drill: a training job with one fault, for you to find.

    ``ranklab.drill(seed=7)`` starts four ranks as processes of their own, waits until none of them moves any more,
    keeps what they can tell, and ends them. Then you ask and answer::

        job = ranklab.drill(seed=7)
        job.stacks(2)
        job.program()
        job.answer(rank=2, line=25, cause="skipped collective")

    Args:
        seed: a whole number from 0, which stands for the same drill on every machine; left out, one is drawn. Seeds 0
            to 19 hold each fault once, as do 20 to 39, and so on. A seed that this process has played before is not
            started again: the game begins anew with what its job left.

    Returns:
        The :class:`ranklab.drills.drill.Drill`; its display shows the last line of each rank's log.

    Raises:
        WorldError: the seed is no whole number from 0.
        RanklabError: the job did not come to a stand, on a machine that is too busy.

    Attributes:
        causes: what an answer chooses from.
        par: the number of requests in which a drill can be solved.

    Used in the chapter *drill*.
    """

    causes = CAUSES
    par = 3

    def __init__(self) -> None:
        self._played: dict[int, list[Scene]] = {}

    def __call__(self, seed: int | None = None) -> Drill:
        """Start the drill of a seed."""
        if seed is None:
            seed = random.SystemRandom().randrange(SEEDS)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise WorldError(f"seed is a whole number from 0, for example ranklab.drill(seed=7), not {seed!r}.")
        case = Case(seed)
        if seed not in self._played:
            from .job import play

            self._played[seed] = play(case)
        return Drill(case, self._played[seed])

    def __repr__(self) -> str:
        return f"ranklab.drill(seed=…): a job of {SIZE} ranks with one of {len(self.causes)} faults, for you to find"


drill = Drills()
