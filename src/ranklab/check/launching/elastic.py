"""Graders of the chapter *elastic*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from ..grading import asked, entries
from ..verdict import Verdict, correct, grader, not_yet

JOBS = 6
EVERY = 8  # steps between two snapshots
SPARE = 3  # restarts that may be left over

# What a start of the ranks is due to: which hosts run then, and whose torchrun counts it.
GROWN, KILLED, SHRUNK = "grown", "killed", "shrunk"
CLUSTERS = (
    {"hosts": 2, "least": 1, "killed": 3, "lost": 1, "added": 1, "wait": 20, "stall": 60},
    {"hosts": 8, "least": 6, "killed": 0, "lost": 2, "added": 2, "wait": 90, "stall": 120},
    {"hosts": 4, "least": 4, "killed": 5, "lost": 0, "added": 0, "wait": 5, "stall": 600},
    {"hosts": 16, "least": 1, "killed": 2, "lost": 7, "added": 5, "wait": 240, "stall": 300},
    {"hosts": 3, "least": 2, "killed": 1, "lost": 0, "added": 4, "wait": 40, "stall": 45},
)


@grader
def lost_steps(answer: Callable[[list[dict[str, Any]]], list[int]]) -> Verdict:
    """Grade a reading of the logs of elastic jobs: how many steps each going back cost.

    Args:
        answer: ``lost(log)`` returns a list of numbers. ``log`` is what all hosts logged, in the order of time: dicts
            with ``host``, ``rank``, ``world_size``, ``restarts`` and ``step``.

    Exercise of the chapter *elastic*.
    """
    for seed in range(JOBS):
        log, expected, told = _job(random.Random(seed))
        given = entries(answer, told, [dict(line) for line in log], what="a list of numbers")
        if given != expected:
            return not_yet(f"{told}: your answer is {given}, the job did {expected} steps again. {_why(given, log)}")
    return correct(f"{JOBS} jobs with hosts that come, go and change their rank, and every repeated step was found.")


def _job(draw: random.Random) -> tuple[list[dict[str, Any]], list[int], str]:
    """Return the log of a job, what each going back cost, and the job in words."""
    hosts, counted = ["computer2"], {"computer1": 0, "computer2": 0}
    log: list[dict[str, Any]] = []
    lost, words, done = [], [], 0
    causes = [GROWN, KILLED, SHRUNK, GROWN]
    for cause in (*causes[: draw.choice([2, 3, 4])], ""):
        last = done + draw.randrange(1, 8)
        for step in range(done + 1, last + 1):
            for rank, host in enumerate(hosts):
                place = {"host": host, "rank": rank, "world_size": len(hosts), "restarts": counted[host]}
                log.append(place | {"step": step})
        if not cause:
            break
        done = last // EVERY * EVERY
        if last > done:
            lost.append(last - done)
        if cause == KILLED:
            counted[draw.choice(hosts)] += 1
        elif cause == SHRUNK:
            gone = draw.choice(hosts)
            hosts.remove(gone)
            counted[gone] = 0  # its torchrun begins to count when it is started again
            counted[hosts[0]] += 1
        else:
            hosts = ["computer1", "computer2"]
        words.append({GROWN: "a host is added", KILLED: "a rank is killed", SHRUNK: "a host is lost"}[cause])
    return log, lost, f"A job in which {', '.join(words)}"


def _repeats(lines: list[dict[str, Any]], extra: int = 1) -> list[int]:
    steps = [line["step"] for line in lines]
    return [one - two + extra for one, two in pairwise(steps) if two <= one]


def _why(given: list[int], log: list[dict[str, Any]]) -> str:
    """Name the slip behind a wrong answer."""
    zero = [line for line in log if line["rank"] == 0]
    if given == _repeats(zero, extra=0):
        return "A job that stops after step 13 and goes on with step 9 repeats 5 steps: 9 to 13."
    if given == _repeats(log):
        return "Several ranks log the same step; that is no repetition."
    for host in ("computer1", "computer2"):
        if given == _repeats([line for line in log if line["host"] == host]):
            return f"Not everything stands in the log of {host}: follow one rank, not one host."
    counted = sum(two["restarts"] > one["restarts"] for one, two in pairwise(log))
    if len(given) == counted:
        return "restarts counts for one torchrun only, and a change of members does not raise it."
    return "At any time exactly one line per step comes from rank 0."


@grader
def elastic_settings(answer: Callable[[Mapping[str, int]], tuple[str, int, float]]) -> Verdict:
    """Grade the choice of torchrun's settings for clusters that lose and gain hosts.

    Args:
        answer: ``choose(cluster)`` returns ``(nnodes, max_restarts, timeout)``. ``cluster`` has ``hosts``, ``least``,
            ``killed``, ``lost``, ``added``, ``wait`` and ``stall``, see the exercise; times are seconds.

    Exercise of the chapter *elastic*.
    """
    for cluster in CLUSTERS:
        where = ", ".join(f"{name} {value}" for name, value in cluster.items())
        given, problem = asked(answer, dict(cluster))
        if not problem and not (isinstance(given, (tuple, list)) and len(given) == 3):
            problem = f"your answer is {given!r}, it should be (nnodes, max_restarts, timeout)."
        problem = problem or _nnodes(given[0], cluster) or _restarts(given[1], cluster) or _timeout(given[2], cluster)
        if problem:
            return not_yet(f"{where}: {problem}")
    return correct(f"{len(CLUSTERS)} clusters get through their faults, and hear of a silent host in time.")


def _nnodes(given: object, cluster: Mapping[str, int]) -> str:
    least, most = cluster["least"], cluster["hosts"]
    wanted = {f"{least}:{most}"} | ({str(most), most} if least == most else set())
    if given in wanted:
        return ""
    if str(given) == str(most):
        return f"nnodes is {given!r}, so the job waits for all {most} hosts when one is lost, and then ends."
    if str(given) == f"{most}:{least}":
        return f"nnodes is {given!r}; the smaller number stands first."
    return f"nnodes is {given!r}; between {least} and {most} hosts are worth running."


def _restarts(given: object, cluster: Mapping[str, int]) -> str:
    need = cluster["killed"] + cluster["lost"]
    if isinstance(given, bool) or not isinstance(given, int):
        return f"max_restarts is {given!r}, it should be a whole number."
    if need <= given <= need + SPARE:
        return ""
    told = f"max_restarts is {given}"
    if cluster["lost"] and given == cluster["killed"]:
        return f"{told}. A lost host counts, too: ranks of the other hosts fail in their next collective."
    if cluster["added"] and given == need + cluster["added"]:
        return f"{told}. An added host is a change of members, which does not count; a bug would run {given} times."
    if given < need:
        return f"{told}, and {need} faults can count on one torchrun."
    return f"{told}: a bug would run {given} times, where {need} are enough."


def _timeout(given: object, cluster: Mapping[str, int]) -> str:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return f"timeout is {given!r}, it should be a number of seconds."
    if given <= cluster["wait"]:
        return f"the timeout of {given:g} s ends healthy ranks, which wait {cluster['wait']} s."
    if not given <= cluster["stall"]:
        return f"with a timeout of {given:g} s you hear of a silent host later than after {cluster['stall']} s."
    return ""
