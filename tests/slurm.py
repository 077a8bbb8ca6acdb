"""What the tests of Slurm share: whether it is installed, and the files that a small one of our own needs."""

import os
import shutil
from pathlib import Path

DAEMONS = ("slurmctld", "slurmd", "munged")
INSTALLED = all(shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") for name in DAEMONS)
WHY_NOT = "" if INSTALLED and os.geteuid() == 0 else "Slurm is not installed (Debian: slurm-wlm munge), or not root"
CONFIGURATION = """
ClusterName=lab
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
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def configure(folder: Path, nodes: list[str], lines: list[str]) -> list[str | Path]:
    """Write the files of a Slurm into a folder.

    Args:
        folder: where they go; the daemons log there as well.
        nodes: names of its nodes.
        lines: what is different from one Slurm to the next: its controller, user, ports and nodes.

    Returns:
        The command that runs munged with a key of its own.
    """
    (folder / "state").mkdir()
    for node in nodes:
        (folder / f"spool-{node}").mkdir()
    (folder / "slurm.conf").write_text("\n".join([CONFIGURATION.format(folder=folder).strip(), *lines, ""]))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # slurmd asks for it, and uses none
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o400)
    files = [f"--{name}-file={folder / ('munge.' + name)}" for name in ("pid", "log", "seed")]
    return ["munged", "-F", "--force", f"--key-file={folder / 'key'}", *files, f"--socket={folder / 'munge.socket'}"]
