"""Graders of the chapter *scaling-and-cost*; readers find them in :mod:`ranklab.check`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..grading import entries, number
from ..verdict import NotYet, Verdict, correct, grader, not_yet

RANKS = (1, 4, 2, 8, 64, 512)  # four first: with two, half of the talk looks like weak scaling
JOBS = ((0.128, 2e6, 1e-3, 1.6e-8), (1.0, 2e9, 1e-5, 2e-11))  # seconds, bytes, α, β
KINDS = ("strong", "weak")
CLOSE = 1e-3
PARTS = ("days", "money", "kWh")
BASE = {"parameters": 8e9, "tokens": 1e12, "gpus": 64, "peak": 989e12, "mfu": 0.4, "efficiency": 1.0}
BASE |= {"price": 2.0, "watts": 700, "overhead": 1.0, "lost": 0.0}
RUNS: tuple[tuple[str, dict[str, float]], ...] = (  # a name, and what is different
    ("a run that loses nothing", {}),
    ("a run with cooling", {"overhead": 1.25}),
    ("a run on 512 GPUs with an efficiency of 75 %", {"gpus": 512, "efficiency": 0.75}),
    ("a run that loses a tenth of its days", {"lost": 0.1}),
    ("a run on one GPU", {"gpus": 1, "parameters": 1e8, "tokens": 2e9, "price": 0.5, "watts": 300}),
    (
        "a large run",
        {"parameters": 405e9, "tokens": 15.6e12, "gpus": 16_384, "efficiency": 0.9, "lost": 0.05, "overhead": 1.1},
    ),
)


@grader
def scaling_efficiency(answer: Callable[[str, int, float, float, float, float], float]) -> Verdict:
    """Grade predicted efficiencies of strong and weak scaling.

    Args:
        answer: ``scaling_efficiency(kind, ranks, seconds, size, alpha, beta)`` returns a fraction; ``kind`` is
            ``"strong"`` or ``"weak"``, ``seconds`` what one rank computes. 24 jobs on 1 to 512 ranks, one thousandth
            allowed.

    Exercise of the chapter *scaling-and-cost*.
    """
    for kind in KINDS:
        for ranks in RANKS:
            for seconds, size, alpha, beta in JOBS:
                where = f"{kind} scaling, {ranks} rank{'s' * (ranks != 1)}, seconds = {seconds:g}, size = {size:g}"
                given = number(answer, where, kind, ranks, seconds, size, alpha, beta)
                expected = _efficiency(kind, ranks, seconds, _talk(ranks, size, alpha, beta))
                if not abs(given - expected) <= CLOSE:  # nan is wrong, too
                    why = _slip(given, kind, ranks, seconds, size, alpha, beta)
                    return not_yet(f"{where}: your answer is {given:.3g}, expected {expected:.3g}.{why}")
    return correct(f"{len(KINDS) * len(RANKS) * len(JOBS)} jobs, strong and weak, on 1 to 512 ranks.")


def _talk(ranks: int, size: float, alpha: float, beta: float) -> float:
    """Return the seconds of a ring ``all_reduce``, step after step."""
    return sum(alpha + size / ranks * beta for _ in range(2 * (ranks - 1)))


def _efficiency(kind: str, ranks: int, seconds: float, talk: float) -> float:
    computing = seconds / ranks if kind == "strong" else seconds
    return computing / (computing + talk)


def _slip(given: float, kind: str, ranks: int, seconds: float, size: float, alpha: float, beta: float) -> str:
    talk = _talk(ranks, size, alpha, beta)
    right, other = _efficiency(kind, ranks, seconds, talk), "weak" if kind == "strong" else "strong"
    slips = [
        (100 * right, "That is in per cent: return a fraction."),
        (ranks * right, "That is the speed-up: divide it by the number of ranks."),
        (_efficiency(other, ranks, seconds, talk), f"That is {other} scaling: how long does one of the ranks compute?"),
        (_efficiency(kind, ranks, seconds, talk / 2), "A ring sums up and hands out: 2 (N − 1) steps."),
        (
            _efficiency(kind, ranks, seconds, 2 * (ranks - 1) * (alpha + size * beta)),
            "Each step of a ring carries an N-th of the bytes.",
        ),
        (
            _efficiency(kind, ranks, seconds, alpha + 2 * (ranks - 1) / ranks * size * beta),
            "Each of the 2 (N − 1) steps costs an α of its own.",
        ),
        (_efficiency(kind, ranks, seconds, talk - 2 * (ranks - 1) * alpha), "Where is α?"),
    ]
    return next((f" {why}" for slip, why in slips if abs(slip - given) <= CLOSE), "")


@grader
def run_bill(answer: Callable[[dict[str, float]], tuple[float, float, float]]) -> Verdict:
    """Grade days, money and energy of six described runs.

    Args:
        answer: ``run_bill(run)`` returns days, money and kWh. ``run`` has ``parameters``, ``tokens``, ``gpus``,
            ``peak``, ``mfu``, ``efficiency``, ``price``, ``watts``, ``overhead`` and ``lost``. 0.1 % allowed.

    Exercise of the chapter *scaling-and-cost*.
    """
    for name, different in RUNS:
        run = BASE | different
        given = entries(answer, name, dict(run), what="three numbers: days, money and kWh")
        if len(given) != len(PARTS):
            raise NotYet(f"{name}: your answer has {len(given)} entries, expected days, money and kWh.")
        for part, got, expected in zip(PARTS, given, _bill(run), strict=True):
            if isinstance(got, bool) or not isinstance(got, (int, float)):
                return not_yet(f"{name}: {part} is {got!r}, a number is expected.")
            if not _near(got, expected):
                told = f"{name}: {part} is {got:,.4g}, expected {expected:,.4g}."
                return not_yet(f"{told}{_forgotten(PARTS.index(part), got, run)}")
    return correct(f"days, money and energy of {len(RUNS)} runs, from one GPU to 16,384.")


def _bill(run: Mapping[str, float], operations: float = 6) -> tuple[float, float, float]:
    useful = run["peak"] * run["mfu"] * run["efficiency"] * (1 - run["lost"])
    hours = operations * run["parameters"] * run["tokens"] / useful / 3600
    return hours / run["gpus"] / 24, hours * run["price"], hours * run["watts"] * run["overhead"] / 1000


def _forgotten(place: int, got: float, run: dict[str, float]) -> str:
    right = _bill(run)[place]
    slips: list[tuple[float, str]] = [
        (_bill(run, 2)[place], "Training takes six operations per parameter and token; two are the forward alone."),
        (_bill(run | {"efficiency": 1})[place], "What does the efficiency do to it?"),
        (_bill(run | {"lost": 0})[place], "The lost part of the days is paid, too."),
        (right * (1 - run["lost"]) * (1 + run["lost"]), "The work has to fit into 1 − lost of the days: divide by it."),
        (right * run["efficiency"] ** 2, "A lower efficiency makes a run longer: divide by it."),
        (right * run["mfu"], "Only the MFU's part of the peak computes: divide by it, too."),
        (right * run["mfu"] ** 2, "A lower MFU makes a run longer: divide by it."),
    ]
    if place == 0:
        slips += [(right * 24, "That is in hours."), (right * run["gpus"], "All GPUs compute at the same time.")]
    else:
        slips += [(right / run["gpus"], "Each of the GPUs is paid and takes power.")]
    if place == 1:
        slips += [(right / 24, "The price is for an hour, not for a day.")]
    if place == 2:
        slips += [
            (right * 1000, "That is in Wh."),
            (right / run["overhead"], "Cooling takes energy, too: overhead."),
        ]
    found: list[str] = [why for slip, why in slips if _near(got, slip) and not _near(slip, right)]
    return f" {found[0]}" if found else ""


def _near(one: Any, other: float) -> bool:
    return abs(one - other) <= CLOSE * abs(other)
