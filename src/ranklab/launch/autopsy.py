"""Why a launch failed: what torchrun's report and the files of the ranks say, in the order in which it happened.

torchrun names the failure with the earliest time, in whole seconds (ProcessFailure and ErrorHandler in
torch/distributed/elastic/multiprocessing/errors, torch 2.13). Ranks that lose a partner fail within the same second,
so the files' own times decide here, and a rank that only waited for another is no cause.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..hangs import strays as words
from ..hangs.evidence import Finding
from ..hangs.report import summarise
from ..layout import name_ranks
from ..outcome import CellOutcome, RankOutcome, clean
from ..system.backends import lost_partner
from . import pytraceback
from .agents import Agent
from .commandline import STANDALONE, Launch

# torchrun's table of failures, and its word on whom it ended itself.
ENTRY = re.compile(r"rank\s+: (\d+) \(local_rank: \d+\)\s+exitcode\s+: (-?\d+) \(pid: (\d+)\)")
ENDED = re.compile(r"Sending process (\d+) closing signal")
TABLE = re.compile(r"^=+\n.*^=+$", re.MULTILINE | re.DOTALL)
ENTRY_TIME = re.compile(r"^(\s+(?:time|host)\s+: ).*$", re.MULTILINE)
ENTRY_PROCESS = re.compile(r"(\bpid: |\bPID )\d+")
PATH = re.compile(r'(?<=[ "])/\S*/(?=[^/\s"]+)')
REFUSED = re.compile(r"^\S+: error: (.+)$", re.MULTILINE)
# ProcessFailure.__post_init__ in torch/distributed/elastic/multiprocessing/errors, torch 2.13.
UNREADABLE = "Failed to parse reply file"
RUNNING = "still running"
LOG_LINE = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ \S+\] ?", re.MULTILINE)


@dataclass
class Failure:
    """Why a launch did not end well.

    Attributes:
        sentence: what went wrong first.
        rank: the rank that it began with, None where it was no rank.
        error: ``Type: message`` of what that rank raised, "" where it raised nothing.
        exit_code: how its process ended, as ``subprocess`` counts: −9 is SIGKILL; None where that is not known.
        recorded: whether the rank wrote torchelastic's error file, which ``@record`` does.
        nodes: the nodes that never came, where that is the cause.
    """

    sentence: str
    rank: int | None = None
    error: str = ""
    exit_code: int | None = None
    recorded: bool = False
    nodes: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        return self.sentence


@dataclass
class _End:
    """How one rank ended: what is in its files and in torchrun's table."""

    outcome: RankOutcome
    when: float = float("inf")
    recorded: bool = False
    answers: bool = False  # whether it was told of another rank's failure, by a lost connection or torchrun's signal


def examine(
    launch: Launch,
    agents: list[Agent],
    reason: str,
    timeout: float,
    strays: Mapping[int, int],
    living: Collection[int] = (),
) -> tuple[CellOutcome, Failure | None]:
    """Say how a launch ended.

    Args:
        launch: what was launched.
        agents: one per node, all ended.
        reason: "finished", "trouble" (a node failed and others went on), "deadline" or "interrupted".
        timeout: the deadline, seconds.
        strays: how many processes each rank had started at the deadline, see :func:`ranklab.launch.family.strays`.
        living: the ranks that ran until the agents were ended.

    Returns:
        What the ranks did, for a panel, and the failure, None where there is none.
    """
    ends = sorted((end for agent in agents for end in _ends(agent, living)), key=lambda end: end.outcome.rank)
    ranks = [end.outcome for end in ends]
    if killed := [agent for agent in agents if (agent.process.returncode or 0) < 0 and not agent.stopped]:
        _lost_with(killed[0], ends)
    broken = [end for end in ends if end.outcome.state in ("died", "raised")]
    if broken:
        return _of_rank(ranks, broken, agents)
    if not any(agent.attempts() for agent in agents):
        ranks = []  # no rank was started: there is nothing to say of them
    outcome = CellOutcome(ranks, timed_out=reason == "deadline")
    failure = _of_agents(launch, agents, reason, timeout, living)
    if failure is not None and failure.exit_code is None and strays:
        _blame(outcome, failure, words.find(_running(agents, living), strays), timeout)
    if failure is not None:
        outcome.headline = failure.sentence
    return outcome, failure


def _blame(outcome: CellOutcome, failure: Failure, found: Finding, timeout: float) -> None:
    """Name what ranks had started in place of the question why they run."""
    failure.sentence = f"After {timeout:g} s: {found.sentence}"
    outcome.cause, outcome.fix = found.cause, found.fix
    for entry in outcome.ranks:
        entry.note = found.notes.get(entry.rank, entry.note)


def _of_rank(ranks: list[RankOutcome], broken: list[_End], agents: list[Agent]) -> tuple[CellOutcome, Failure]:
    """Name the rank that failed first: one that was killed, else the earliest that raised."""
    real = [end.when for end in broken if end.outcome.state == "raised" and not end.answers]
    for end in broken:
        # What a rank answers to another's error, from a handler or an except clause, is not the cause.
        if real and end.outcome.state == "died" and (end.outcome.exit_code or 0) > 0 and end.when > min(real):
            end.outcome.state = "freed"
    broken = [end for end in broken if end.outcome.state != "freed"]
    broken.sort(key=lambda end: (end.outcome.state != "died" or (end.outcome.exit_code or 0) >= 0, end.when))
    recorded = {end.outcome.rank: end.recorded for end in broken}
    raised = {end.outcome.rank: end.outcome.error for end in broken}
    told = [end.outcome for end in broken] + [entry for entry in ranks if entry.state == "done"]
    result = summarise(told, "finished", 0, range(len(ranks)), len(ranks), what="program")
    first = next((end.outcome for end in broken if end.outcome.state != "lost"), broken[0].outcome)
    result.ranks, result.advice, result.details = ranks, "", []
    for entry in ranks:
        # Whether a rank that waits is told that its partner has gone, or ended by torchrun before that, is a
        # matter of milliseconds.
        if entry.state in ("lost", "freed"):
            entry.state, entry.error, entry.traceback, entry.stderr = "freed", "", [], ""
            entry.note = f"ended because rank {first.rank} had failed"
    starts = max(agent.attempts() for agent in agents)
    if starts > 1:
        result.advice = f"torchrun started the ranks {starts} times; this is the last time."
    failure = Failure(result.headline, first.rank, raised[first.rank], first.exit_code, recorded.get(first.rank, False))
    return result, failure


def _lost_with(agent: Agent, ends: list[_End]) -> None:
    """Mark the ranks that only lost a partner when one node's torchrun was killed: they are not the cause."""
    gone = set(agent.ranks())
    for outcome in (end.outcome for end in ends):
        if outcome.state == "raised" and lost_partner(outcome.error, overdue=True):
            outcome.state, outcome.error, outcome.traceback = "freed", "", []
        if outcome.state == "freed" and lost_partner(outcome.stderr, overdue=True):
            outcome.stderr = ""
        # Whether a rank was told that or ended by its torchrun before that is a matter of milliseconds.
        if outcome.state == "freed" and outcome.rank not in gone and outcome.note != RUNNING:
            outcome.note = f"ended because torchrun on {agent.launch.name(agent.node)} had been killed"


def _of_agents(
    launch: Launch, agents: list[Agent], reason: str, timeout: float, living: Collection[int]
) -> Failure | None:
    """Say what happened to torchrun itself, where no rank is to blame."""
    if reason == "interrupted":
        return Failure("You stopped torchrun; nothing of it runs any more.")
    failed = [agent for agent in agents if agent.process.returncode and not agent.stopped]
    for agent in sorted(failed, key=lambda agent: agent.process.returncode > 0):  # a killed one is the cause
        return Failure(_why_failed(agent), exit_code=agent.process.returncode)
    if reason in ("deadline", "trouble"):
        return _too_late(launch, agents, timeout, living)
    return None


def _why_failed(agent: Agent) -> str:
    """Say why one torchrun failed, in its own words."""
    code, said = agent.process.returncode, agent.log.text()
    where = f" on {agent.launch.name(agent.node)}" if len(agent.launch.nodes) > 1 else ""
    if code < 0:
        ended = "its ranks ended with it" if agent.attempts() else "it had started no rank"
        return f"torchrun{where} was killed by signal {-code}; {ended}."
    if refused := REFUSED.findall(said):
        return f"torchrun{where} refuses the command: {refused[-1]}"
    if UNREADABLE in said:
        return (
            f"torchrun{where} failed, for a rank was ended while it wrote its error file, and torchrun fails where "
            "such a file is half written. Start the program again."
        )
    raised = pytraceback.find(LOG_LINE.sub("", said))
    return f"torchrun{where} failed: {raised.error.splitlines()[0] if raised else f'exit status {code}'}"


def _too_late(launch: Launch, agents: list[Agent], timeout: float, living: Collection[int]) -> Failure:
    """Say what everybody waited for when the time was up."""
    when = f"After {timeout:g} s: "
    absent = [agent.node for agent in agents if not agent.arrived()]
    waiting = [agent.node for agent in agents if agent.arrived() and not agent.met()]
    if absent and waiting:
        came, missing = _nodes(launch, waiting), _nodes(launch, absent)
        verb = "waits" if len(waiting) == 1 else "wait"
        sentence = f"{came} {verb} for {missing}, which never came to the meeting point."
        return Failure(when + sentence, nodes=absent)
    if absent:
        return Failure(f"{when}torchrun has not come to the point where it starts ranks.", nodes=absent)
    if waiting and launch.rdzv != STANDALONE:
        advice = "is the address right, the port open?"
        return Failure(f"{when}{_nodes(launch, waiting)} did not find one another; {advice}")
    running = _running(agents, living)
    be = "was" if len(running) == 1 else "were"
    return Failure(
        f"{when}{name_ranks(running)} {be} still running. Do they wait for one another, or is timeout= too short?"
    )


def _running(agents: list[Agent], living: Collection[int]) -> list[int]:
    found = living or [rank for agent in agents for rank in agent.ranks() if agent.process.returncode != 0]
    return sorted(found)


def _nodes(launch: Launch, nodes: list[int]) -> str:
    return " and ".join(launch.name(node) for node in nodes)


def _ends(agent: Agent, living: Collection[int]) -> list[_End]:
    """Read how the ranks of a node ended."""
    said = agent.log.text()
    table = {int(rank): (int(code), int(pid)) for rank, code, pid in ENTRY.findall(said)}
    ended = {int(pid) for pid in ENDED.findall(said)}
    return [
        _end(agent, local_rank, rank, table.get(rank), ended, bool(table), rank in living if living else None)
        for local_rank, rank in enumerate(agent.ranks())
    ]


def _end(
    agent: Agent,
    local_rank: int,
    rank: int,
    entry: tuple[int, int] | None,
    ended: set[int],
    reported: bool,
    living: bool | None,
) -> _End:
    stdout, stderr = (agent.file(local_rank, name) for name in ("stdout.log", "stderr.log"))
    said = stderr.text()
    end = _End(RankOutcome(rank, clean(stdout.text()), clean(pytraceback.quiet(said)).strip("\n")))
    outcome, raised = end.outcome, pytraceback.find(said)
    stderr.look()
    end.when = stderr.changed if said else end.when  # that of an empty file is when the rank began
    error_file = agent.file(local_rank, "error.json")
    if callstack := _recorded(error_file):
        raised, end.recorded, end.when = pytraceback.find(callstack) or raised, True, error_file.path.stat().st_mtime
    outcome.exit_code, pid = entry or (None, 0)
    if (outcome.exit_code or 0) < 0:
        end.when = end.when if said else 0.0  # a kill comes before what others say of it
    end.answers = pid in ended or lost_partner(said, overdue=True)
    uncaught = end.recorded or f"[rank{rank}]: Traceback" in said  # torch marks what Python is about to end for
    if raised and outcome.exit_code not in (None, 1) and not uncaught:
        raised = None  # Python ends with 1 where an error ends it: this one was handled, and the program went on
    if outcome.exit_code is None and (agent.process.returncode == 0 or reported):
        outcome.state = "done"
    elif outcome.exit_code is None and living and not uncaught:
        outcome.state = "freed"
    elif outcome.exit_code is None:
        outcome.state = "raised" if raised else "done" if living is False and agent.stopped else "freed"
    else:
        outcome.state = _state(outcome.exit_code, pid in ended, raised is not None)
    if raised and outcome.state == "raised":
        outcome.error, outcome.traceback, outcome.stderr = raised.error, raised.lines, raised.before
    elif outcome.state == "died":
        outcome.last_words = outcome.stderr
    elif outcome.state == "freed":
        outcome.note = RUNNING if agent.stopped else "ended with its torchrun"
    return end


def _state(code: int, ended: bool, raised: bool) -> str:
    """Tell how a rank ended by its exit status, whether torchrun has sent it a signal, and whether it told an error."""
    if ended and (code < 0 or not raised):
        return "freed"
    return "raised" if raised and code > 0 else "died"


def _recorded(error_file) -> str:
    """Return the traceback in torchelastic's error file, "" where there is none."""
    error_file.look()
    try:
        message = json.loads(error_file.text() or "{}").get("message", "")
    except json.JSONDecodeError:  # the rank was killed while it wrote the file
        return ""
    return message.get("extraInfo", {}).get("py_callstack", "") if isinstance(message, dict) else ""


def table(agents: list[Agent]) -> str:
    """Return the report that torchrun prints at its end, without what differs between runs and machines."""
    found = [match[0] for agent in agents if (match := TABLE.search(agent.log.text()))]
    text = ENTRY_PROCESS.sub(r"\1…", ENTRY_TIME.sub(r"\1…", "\n\n".join(found)))
    return PATH.sub("…/", text)
