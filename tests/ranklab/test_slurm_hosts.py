"""The batch script of the book on a real Slurm whose nodes are two hosts of a lab."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import slurm

import ranklab

SCRIPTS = Path(__file__).parents[2] / "book" / "launching" / "scripts"
PATIENCE = 60.0


@pytest.fixture
def cluster(tmp_path):
    """Two hosts with a Slurm of their own: the controller on the first, a daemon on each."""
    nodes = ["computer1", "computer2"]
    lines = ["SlurmctldHost=computer1", "SlurmUser=root", "NodeName=computer[1-2] CPUs=2 RealMemory=1000"]
    munged = slurm.configure(tmp_path, nodes, lines)
    environment = dict(os.environ, SLURM_CONF=str(tmp_path / "slurm.conf"))
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"])
    with ranklab.hosts(2) as lab, open(tmp_path / "daemons.log", "wb") as log:

        def start(host, *argv):
            host.popen(argv, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        start(lab[0], *munged)
        start(lab[0], "slurmctld", "-D")
        for host in lab:
            start(host, "slurmd", "-D", "-N", host.name)

        def ask(command):
            exports = f"export SLURM_CONF={tmp_path}/slurm.conf PATH={environment['PATH']}; cd {tmp_path}; "
            return lab[0].run(exports + command, timeout=PATIENCE, check=False)

        deadline = time.monotonic() + PATIENCE
        while ask("sinfo --noheader --format=%D%t") != "2idle":
            assert time.monotonic() < deadline, (tmp_path / "controller.log").read_text()
        yield ask


@pytest.mark.skipif(bool(slurm.WHY_NOT), reason=slurm.WHY_NOT)
def test_the_batch_script_runs_four_ranks_on_two_nodes(cluster, tmp_path):
    said = cluster(f"sbatch --wait {SCRIPTS / 'ranks.sbatch'} {SCRIPTS / 'across.py'}")
    job = re.search(r"Submitted batch job (\d+)", said)
    assert job, said
    output = (tmp_path / f"ranks-{job[1]}.out").read_text()
    told = sorted(re.findall(r"^(\d): (rank .*)", output, flags=re.MULTILINE), key=lambda line: line[1])
    assert told == [
        ("0", "rank 0 of 4, local rank 0 on computer1: all ranks add up to 6"),
        ("0", "rank 1 of 4, local rank 1 on computer1: all ranks add up to 6"),
        ("1", "rank 2 of 4, local rank 0 on computer2: all ranks add up to 6"),
        ("1", "rank 3 of 4, local rank 1 on computer2: all ranks add up to 6"),
    ], output
