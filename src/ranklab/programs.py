"""The programs that the book uses beside Python: what for, and which Debian package brings them.

The one table of them. Hosts, the doctor, the comparison of chapters (bookkit) and ``.ci/run`` read it.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Program:
    """A program of the system.

    Attributes:
        name: what is typed.
        package: the Debian package that brings it.
        without: what a machine without it does not do; "" where only a reader would use it, so that nothing lacks.
        tag: cells that run it have this tag; "" where no cell does.
        others: other names it goes by.
        everywhere: whether it is a part of every Debian.
    """

    name: str
    package: str
    without: str = ""
    tag: str = ""
    others: tuple[str, ...] = ()
    everywhere: bool = False


HOSTS = "nodes are no hosts of their own, and what shows hosts does nothing"
SLURM = "there is no Slurm, and cells that use it do nothing"
PROGRAMS = (
    Program("ip", "iproute2", HOSTS, "needs-hosts"),
    Program("tc", "iproute2", HOSTS, "needs-hosts"),
    Program("nsenter", "util-linux", HOSTS, "needs-hosts", everywhere=True),
    Program("unshare", "util-linux", HOSTS, "needs-hosts", everywhere=True),
    Program("mount", "mount", HOSTS, "needs-hosts", everywhere=True),
    Program("env", "coreutils", HOSTS, "needs-hosts", everywhere=True),
    Program("ping", "iputils-ping", "cells that ping a host do nothing", "needs-ping"),
    Program("slurmctld", "slurmctld", SLURM, "needs-slurm"),
    Program("slurmd", "slurmd", SLURM, "needs-slurm"),
    Program("srun", "slurm-client", SLURM, "needs-slurm"),
    Program("munged", "munge", SLURM, "needs-slurm"),
    Program(
        *("chromium", "chromium", "the tests of the built pages are skipped"),
        others=("chromium-browser", "google-chrome", "google-chrome-stable"),
    ),
    Program("sshd", "openssh-server", "the test of ranks that ssh starts is skipped"),
    Program("ethtool", "ethtool"),
    Program("iperf3", "iperf3"),
)
PACKAGES = {program.name: program.package for program in PROGRAMS}


def search_path(environment: dict[str, str]) -> str:
    """Return the folders of an environment's programs, and beside each ``bin`` the administrator's ``sbin``.

    ``ip`` and ``tc`` are there, and an ordinary user's PATH does not name it everywhere.
    """
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    beside = [str(Path(folder).with_name("sbin")) for folder in folders if Path(folder).name == "bin"]
    return os.pathsep.join(dict.fromkeys([*folders, *beside]))


def find(program: Program) -> str | None:
    """Return the path of a program on this machine, or None."""
    path = search_path(dict(os.environ))
    return next(filter(None, (shutil.which(name, path=path) for name in (program.name, *program.others))), None)


def lacking(*names: str) -> list[Program]:
    """Return the programs, of those named or of all that something lacks without, that this machine does not have."""
    asked = [program for program in PROGRAMS if (program.name in names if names else program.without)]
    return [program for program in asked if find(program) is None]


def missing(name: str) -> str:
    """Say in one sentence that a program is not on this machine; "" where it is.

    Args:
        name: as the table has it.

    A cell that runs a program asks first: ``if why := missing("ping"): print(why)``.
    """
    package = PACKAGES[name]
    return f"There is no {name} here: sudo apt install {package}." if lacking(name) else ""


if __name__ == "__main__":
    # For .ci/run: what it installs; with --names what a machine may be without, with --tags the cells that need it.
    printed = {
        "": dict.fromkeys(program.package for program in lacking()),
        "--names": [name for program in PROGRAMS if not program.everywhere for name in (program.name, *program.others)],
        "--tags": dict.fromkeys(program.tag for program in PROGRAMS if program.tag),
    }
    print(*printed["".join(sys.argv[1:])])
