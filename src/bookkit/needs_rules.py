"""The rules of cells that need something: each chapter runs to its end where the machine lacks it."""

import re

from bookkit.needs import EXPECTED_ERROR, NEEDS_FRAMEWORKS, NEEDS_GPU, NEEDS_HOSTS, NEEDS_SLURM
from bookkit.notebook import tags
from bookkit.rulebook import rule
from ranklab.programs import PROGRAMS

RUNS = r"""(?:\b(?:run|[Pp]open|call|check_call|check_output|system)\(\[? *f?["']|^ *!) *{}\b"""  # a program, by name


@rule("needs-hosts", "let lab be the hosts, or None where there are none, and ask `if lab:` before they are used")
def needs_hosts(chapter):
    """The chapter runs to its end where the machine can make no hosts, so it has to know whether there are any."""
    yield from _unasked(chapter, NEEDS_HOSTS, "lab")


@rule("needs-slurm", "let slurm be a Slurm, or None where there is none, and ask `if slurm:` before it is used")
def needs_slurm(chapter):
    """The chapter runs to its end where there is no Slurm."""
    yield from _unasked(chapter, NEEDS_SLURM, "slurm")


@rule(
    "needs-frameworks",
    'let frameworks be `not without("needs-frameworks")` of ranklab.packages, and ask `if frameworks:` before use',
)
def needs_frameworks(chapter):
    """The chapter runs to its end where the packages are not installed."""
    yield from _unasked(chapter, NEEDS_FRAMEWORKS, "frameworks")


def _unasked(chapter, tag, name):
    asked = False
    for index, _, cell in chapter.code:
        asked = asked or bool(re.search(rf"^\s*(?:\w+ = )*{name} = ", cell.source, re.M))
        if tag in tags(cell) and not asked:
            yield index, f"it is tagged {tag}, and no cell so far has made {name}"


@rule("program", "tag the cell, and ask missing() of ranklab.programs, here or above, before the program runs")
def program(chapter):
    """A machine may lack a program that a cell runs: the cell says so, and its output is not compared there."""
    above = ""
    for index, _, cell in chapter.code:
        above += cell.source
        for known in PROGRAMS:
            if known.tag in ("", NEEDS_HOSTS, NEEDS_SLURM):
                continue  # hosts and a Slurm have rules of their own
            runs = re.search(RUNS.format(known.name), cell.source, re.M)
            if runs and known.tag not in tags(cell):
                yield index, f"it runs {known.name} and is not tagged {known.tag}"
            if known.tag in tags(cell) and f'missing("{known.name}")' not in above:
                yield index, f"it is tagged {known.tag}, and no cell so far has asked whether {known.name} is there"


@rule("needs-gpu", f"tag the cell {EXPECTED_ERROR}: without a GPU it raises, and Run All goes on below it")
def needs_gpu(chapter):
    """Without a GPU, JupyterLab and VS Code run what stands below such a cell."""
    for index, _, cell in chapter.code:
        if NEEDS_GPU in tags(cell) and EXPECTED_ERROR not in tags(cell):
            yield index, f"it needs a GPU and is not tagged {EXPECTED_ERROR}"
