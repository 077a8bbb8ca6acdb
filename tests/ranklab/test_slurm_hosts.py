"""The batch script of the chapter *two-computers* on a real Slurm whose nodes are two hosts of a lab."""

import re
from pathlib import Path

import pytest
from hosting import why_not

import ranklab
from ranklab.lab.slurm import NEEDED, Slurm
from ranklab.programs import lacking

SCRIPTS = Path(__file__).parents[2] / "book" / "launching" / "scripts"


@pytest.fixture
def cluster():
    """Two nodes and a login node."""
    if lack := why_not() or ", ".join(each.name for each in lacking() if each.name in NEEDED):
        pytest.skip(lack)
    with ranklab.hosts(3) as lab:
        yield Slurm(lab, SCRIPTS)


def test_the_batch_script_runs_four_ranks_on_two_nodes(cluster):
    output = cluster.sbatch("ranks.sbatch", "across.py").wait().output
    told = sorted(re.findall(r"^(\d): (rank .*)", output, flags=re.MULTILINE), key=lambda line: line[1])
    assert told == [
        ("0", "rank 0 of 4, local rank 0 on computer1: all ranks add up to 6"),
        ("0", "rank 1 of 4, local rank 1 on computer1: all ranks add up to 6"),
        ("1", "rank 2 of 4, local rank 0 on computer2: all ranks add up to 6"),
        ("1", "rank 3 of 4, local rank 1 on computer2: all ranks add up to 6"),
    ], output


def test_what_srun_says_while_it_waits_for_nodes_is_left_out(cluster):
    both = "srun --nodes=2 --exclusive"
    said = cluster.run(f"{both} sleep 2 & sleep 1; {both} hostname 2>&1 | sort; wait")
    assert said.splitlines() == ["computer1", "computer2"]
