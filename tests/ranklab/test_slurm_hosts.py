"""The batch script of the book on a real Slurm whose nodes are two hosts of a lab."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ranklab

SCRIPTS = Path(__file__).parents[2] / "book" / "launching" / "scripts"
DAEMONS = ("slurmctld", "slurmd", "munged")
SLURM = all(shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") for name in DAEMONS)
PATIENCE = 60.0

CONFIGURATION = """
ClusterName=lab
SlurmctldHost=computer1
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
MailProg=/bin/true
NodeName=computer[1-2] CPUs=2 RealMemory=1000
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture
def cluster(tmp_path):
    """Two hosts with a Slurm of their own: the controller on the first, a daemon on each."""
    for name in ("state", "spool-computer1", "spool-computer2"):
        (tmp_path / name).mkdir()
    (tmp_path / "slurm.conf").write_text(CONFIGURATION.format(folder=tmp_path))
    (tmp_path / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # slurmd asks for it, and uses none
    (tmp_path / "key").write_bytes(os.urandom(128))
    (tmp_path / "key").chmod(0o400)
    environment = dict(os.environ, SLURM_CONF=str(tmp_path / "slurm.conf"))
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"])
    files = [f"--{name}-file={tmp_path / ('munge.' + name)}" for name in ("pid", "log", "seed")]
    with ranklab.hosts(2) as lab, open(tmp_path / "daemons.log", "wb") as log:

        def start(host, *argv):
            host.popen(argv, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        start(
            lab[0], "munged", "-F", "--force", "--key-file", tmp_path / "key", *files,
            "--socket", tmp_path / "munge.socket",
        )  # fmt: skip
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


@pytest.mark.ranks
@pytest.mark.skipif(
    not SLURM or os.geteuid() != 0, reason="Slurm is not installed (Debian: slurm-wlm munge), or not root"
)
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
