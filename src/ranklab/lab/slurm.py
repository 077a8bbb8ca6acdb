"""A Slurm on the reader's desk: its daemons on the hosts of a lab, its files in a private folder.

The last host is the login node, where the controller runs, too; the others are the nodes that work. It is the Slurm of
the distribution with a configuration of our own; nothing of the machine's own Slurm, if it has one, is read or changed.
A job of the partition ``urgent`` takes the nodes of jobs in ``debug``, which then get their signal and ten minutes.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import psutil

from ..errors import RanklabError, WorldError
from ..programs import lacking
from .host import Host
from .job import LOOK, PATIENCE, Job
from .lab import Lab

ENDING = 20.0  # seconds in which a command that is not finished in time may end its job
WAITS = re.compile(r"(?m)^srun: job \d+ (?:queued and waiting for resources|has been allocated resources)\n?")
NEEDED = ("slurmctld", "slurmd", "srun", "munged")
NOBODY = 65534
CONFIGURATION = """
ClusterName=lab
SlurmctldHost={login}
SlurmUser={user}
SlurmdUser={user}
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
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=2
MinJobAge=604800
GresTypes=gpu
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
MailProg=/bin/true
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP GraceTime=600
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2
"""


def _end(process: subprocess.Popen) -> None:
    """End a command and what it has started; ``srun`` takes its job from the nodes where it is asked, not killed."""
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended by itself
        family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    try:
        if family:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ENDING)
            psutil.wait_procs(family, ENDING)  # a shell ends at once, its srun when it has asked for the job's end
    finally:
        process.kill()
        for one in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait()


def _read(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


class Slurm:
    """A Slurm on the hosts of a lab; it ends with the lab.

    Args:
        lab: the hosts, see :func:`ranklab.hosts`: the nodes, and one more, the login node.
        programs: a folder whose files the job finds in its working folder.
        cpus: processors that each node pretends to have.
        gpus: GPUs that each node pretends to have. They are names only: Slurm counts them and tells jobs their numbers.

    Attributes:
        nodes: the hosts that work.
        login: the host on which commands are typed.
        folder: the working folder of jobs, in which they also leave their logs; private, removed with the lab.

    Raises:
        WorldError: one host is not enough, or Slurm is not installed; the sentence says what to do.
        RanklabError: the daemons did not come up; with what the controller logged.

    Used in the chapter *slurm-and-schedulers*::

        with ranklab.hosts(3) as lab:
            slurm = Slurm(lab)
            print(slurm.run("srun --nodes=2 hostname"))
    """

    def __init__(self, lab: Lab, programs: str | Path | None = None, cpus: int = 4, gpus: int = 0) -> None:
        if missing := [program for program in lacking() if program.name in NEEDED]:
            names, packages = (sorted({getattr(each, kind) for each in missing}) for kind in ("name", "package"))
            raise WorldError(f"Slurm needs {', '.join(names)}: sudo apt install {' '.join(packages)}.")
        if len(lab) < 2:
            raise WorldError("A Slurm needs a node and a login node: make two hosts or more, ranklab.hosts(2).")
        self._lab, (*self.nodes, self.login) = lab, lab
        self._user = (os.geteuid() or NOBODY) if lab.as_user else os.geteuid()
        home = lab[0].etc.parent / "slurm"
        home.mkdir()
        self.folder = home / "work"
        if programs is None:
            self.folder.mkdir()
        else:
            shutil.copytree(programs, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        # What a job leaves in a temporary folder goes with the lab, too: torchrun leaves one for its logs.
        (home / "tmp").mkdir()
        self._environment = dict(os.environ, SLURM_CONF=str(home / "slurm.conf"), TMPDIR=str(home / "tmp"))
        self._environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._configure(home, cpus, gpus)
        self._start(home)

    def _configure(self, home: Path, cpus: int, gpus: int) -> None:
        (home / "state").mkdir()
        lines = [CONFIGURATION.format(folder=home, user=self._user, login=self.login.name).strip()]
        for host in self.nodes:
            (home / f"spool-{host.name}").mkdir()
            lines.append(f"NodeName={host.name} CPUs={cpus} RealMemory=1000" + f" Gres=gpu:{gpus}" * bool(gpus))
        for number in range(gpus):
            (home / f"gpu{number}").symlink_to(os.devnull)  # Slurm asks for a device
        (home / "gres.conf").write_text(f"Name=gpu File={home}/gpu[0-{gpus - 1}]\n" if gpus else "")
        (home / "slurm.conf").write_text("\n".join([*lines, ""]))
        (home / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # slurmd asks for it, and uses none
        (home / "key").write_bytes(os.urandom(128))
        (home / "key").chmod(0o400)

    def _start(self, home: Path) -> None:
        files = [f"--{name}-file={home / ('munge.' + name)}" for name in ("pid", "log", "seed")]
        munged = ["munged", "-F", "--force", f"--key-file={home / 'key'}", *files, f"--socket={home / 'munge.socket'}"]
        with open(home / "daemons.log", "wb") as log:
            self._popen(self.login, munged, stdout=log, stderr=log)
            self._popen(self.login, ["slurmctld", "-D"], stdout=log, stderr=log)
            for host in self.nodes:
                self._popen(host, ["slurmd", "-D", "-N", host.name], stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        idle = f"{len(self.nodes)}idle"
        while self.run("sinfo --noheader --format=%D%t", check=False) != idle:
            if time.monotonic() > deadline:
                last = (home / "controller.log").read_text().splitlines()[-3:]
                raise RanklabError("\n".join(["Slurm did not come up. Its controller said last:", *last]))
            time.sleep(LOOK)

    def _popen(self, host: Host, argv: Sequence[str], **options: Any) -> subprocess.Popen:
        # User 0 drops its groups before it starts a task. Root of a user namespace may not, so there we are another.
        become = ["unshare", "--user", f"--map-user={self._user}", f"--map-group={self._user}"]
        user = become if self._lab.as_user else []
        return host.popen([*user, *argv], env=self._environment, cwd=self.folder, stdin=subprocess.DEVNULL, **options)

    def run(self, command: str, timeout: float = PATIENCE, check: bool = True) -> str:
        """Run a command on the login node, ``"sinfo"``, and wait for its end.

        Args:
            command: what you would type there.
            timeout: seconds until it is ended.
            check: raise where its exit status is not 0.

        Returns:
            What it printed, errors among it, without the last line's end and without the lines with which ``srun`` says
            that it waits for nodes: whether the last job has left them already is a matter of the machine's load.

        Raises:
            RanklabError: it failed, or was not finished in time.
        """
        # A file, and no pipe: what the command leaves in the background, as "server &" does, would keep a pipe open.
        with tempfile.TemporaryFile("w+", errors="replace") as file:
            process = self._popen(self.login, ["sh", "-c", command], stdout=file, stderr=subprocess.STDOUT)
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                sentence = f"`{command}` was not finished after {timeout:g} s and was ended."
                raise RanklabError(f"{sentence}\n{_read(file)}") from None
            finally:
                _end(process)
            output = _read(file)
        if check and process.returncode:
            raise RanklabError(f"`{command}` failed with exit status {process.returncode}.\n{output}".rstrip())
        return WAITS.sub("", output).rstrip("\n")

    def sbatch(self, script: str, *arguments: str) -> Job:
        """Submit a batch script.

        Args:
            script: its text, which begins with ``#!``, or the name of a file in the working folder.
            arguments: of the script.

        Returns:
            The job, which may not have started yet: ``slurm.sbatch(…).wait()``.

        Raises:
            RanklabError: what ``sbatch`` said.
        """
        if script.startswith("#!"):
            (self.folder / "job.sbatch").write_text(script)
            script = "job.sbatch"
        return Job(self, self.run(shlex.join(["sbatch", script, *arguments])))

    def __repr__(self) -> str:
        return self.run("sinfo")
