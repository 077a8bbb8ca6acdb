"""The programs that the book uses are looked for in one way, and the documents name their packages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ranklab import programs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with the programs of two folders; returns a function that puts one there."""
    for name in ("bin", "sbin"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def put(name, folder="bin"):
        (tmp_path / folder / name).write_text("#!/bin/sh\n")
        (tmp_path / folder / name).chmod(0o755)

    return put


def test_the_administrators_programs_are_found_beside_the_users(machine):
    assert programs.missing("ip") == "There is no ip here: sudo apt install iproute2."
    machine("ip", "sbin")
    assert programs.missing("ip") == ""


def test_an_ordinary_path_leads_to_the_sbin_folders():
    found = programs.search_path({"PATH": "/opt/tools:/usr/local/bin:/usr/bin:/bin"})
    assert found == "/opt/tools:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


def test_a_program_goes_by_other_names(machine):
    machine("google-chrome")
    assert programs.missing("chromium") == ""


def test_what_only_a_reader_would_use_lacks_nowhere(machine):
    assert "iperf3" not in {program.name for program in programs.lacking()}
    assert {program.name for program in programs.lacking()} >= {"ip", "tc", "ping", "chromium"}


def test_a_program_of_no_table_is_a_mistake_of_the_author(machine):
    with pytest.raises(KeyError, match="pong"):
        programs.missing("pong")


def test_continuous_integration_gets_the_packages_the_names_and_the_tags(machine):
    asked = [sys.executable, programs.__file__]
    slurm = ["slurmctld", "slurmd", "slurm-client", "munge"]
    packages = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    hosts, tests = ["iproute2", "util-linux", "mount", "coreutils", "iputils-ping"], ["chromium", "openssh-server"]
    assert packages == [*hosts, *slurm, *tests]
    names = subprocess.run([*asked, "--names"], capture_output=True, text=True, check=True).stdout.split()
    assert {"ip", "tc", "ping", "google-chrome"} <= set(names)
    assert not {"env", "mount", "unshare"} & set(names)  # the shell itself would miss them
    tags = subprocess.run([*asked, "--tags"], capture_output=True, text=True, check=True).stdout.split()
    # A GPU is no program: without one nothing can be installed.
    assert tags == ["needs-hosts", "needs-ping", "needs-slurm"]


@pytest.mark.parametrize("name", ["README.md", "book/setup.md"])
def test_the_documents_name_the_packages_of_cells(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    wanted = {program.package for program in programs.PROGRAMS if program.tag and not program.everywhere}
    assert {package for package in wanted if not re.search(rf"\b{package}\b", text)} == set()


def test_no_second_list_of_packages():
    words = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert not {program.package for program in programs.PROGRAMS} & set(re.findall(r"[\w-]+", words))
