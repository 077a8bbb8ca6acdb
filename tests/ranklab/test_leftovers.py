"""Folders of notebooks that have gone, and of those that only cannot be seen from here."""

import os
import shutil
import signal
import socket
import subprocess
import sys

import psutil
import pytest
from support import eventually

from ranklab.system import leftovers

LOOK = "from ranklab.system import leftovers; leftovers.clean(); print(leftovers.folders())"
IN_A_CONTAINER = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def gone() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def zombie():
    """The number of a process that has ended and that nobody has waited for."""
    process = psutil.Popen([sys.executable, "-c", ""])
    assert eventually(lambda: process.status() == psutil.STATUS_ZOMBIE)
    yield process.pid
    process.wait()


def test_an_owner_that_nobody_has_waited_for_has_gone(temporary, zombie):
    home = leftovers.make_home()
    where = (home / leftovers.OWNER_FILE).read_text().split("\n")[1:]
    (home / leftovers.OWNER_FILE).write_text("\n".join([str(zombie), *where]))
    assert leftovers.folders() == [home]


def disown(home, **changed):
    """Let the owner of a folder have gone; change where it was."""
    _, host, namespace = (home / leftovers.OWNER_FILE).read_text().split("\n")
    where = {"host": host, "namespace": namespace} | changed
    (home / leftovers.OWNER_FILE).write_text("\n".join([str(gone()), *where.values()]))


def test_the_folder_of_a_notebook_that_has_gone_is_found(temporary):
    ours, left = leftovers.make_home(), leftovers.make_home()
    disown(left)
    assert leftovers.folders() == [left]
    leftovers.clean()
    assert ours.exists() and not left.exists()


@pytest.mark.parametrize("elsewhere", [{"host": "another-machine"}, {"namespace": "pid:[1]"}])
def test_a_number_from_another_machine_or_container_means_nothing_here(temporary, elsewhere):
    home = leftovers.make_home()
    disown(home, **elsewhere)
    assert leftovers.folders() == []


@pytest.mark.parametrize("text", ["", "123", "x\ny\nz"], ids=["empty", "number only", "no number"])
def test_a_note_that_says_something_else_is_left_alone(temporary, text):
    (temporary / "ranklab-other").mkdir()
    (temporary / "ranklab-other" / leftovers.OWNER_FILE).write_text(text)
    assert leftovers.folders() == []


def test_where_there_are_no_namespaces(temporary, monkeypatch):
    def fail(_):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "readlink", fail)
    home = leftovers.make_home()
    assert (home / leftovers.OWNER_FILE).read_text().split("\n") == [str(os.getpid()), socket.gethostname(), ""]
    disown(home)
    assert leftovers.folders() == [home]


containers_here = pytest.mark.skipif(
    not shutil.which("unshare") or subprocess.run([*IN_A_CONTAINER, "true"], capture_output=True).returncode != 0,
    reason="this machine allows no containers",
)


@containers_here
def test_another_container_that_shares_the_folder_leaves_a_running_world_alone(temporary):
    home = leftovers.make_home()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    look = subprocess.run(
        [*IN_A_CONTAINER, sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True
    )
    assert look.stdout == "[]\n", look.stderr
    assert home.exists()


# A notebook with one rank, which prints: where Popen returns, Linux may not show the rank's environment yet.
NOTEBOOK = """
import os, subprocess, sys
from ranklab.system.deadman import HOME, OWNER
os.environ.update({{OWNER: "{owner}", HOME: "/nowhere"}})
rank = subprocess.Popen([sys.executable, "-c", "import time; print('started', flush=True); time.sleep(600)"])
rank.wait()
"""


@containers_here
@pytest.mark.parametrize(("container", "found"), [(IN_A_CONTAINER, 0), ([], 1)], ids=["in a container", "here"])
def test_a_rank_whose_owner_has_another_number_outside_is_left_alone(container, found):
    # In its container the number would be its owner's; seen from here it is that of a process that has gone.
    program = NOTEBOOK.format(owner=gone())
    notebook = subprocess.Popen([*container, sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    family = [psutil.Process(notebook.pid)]
    try:
        assert notebook.stdout.readline() == "started\n"
        family += family[0].children(recursive=True)
        ours = {process.pid for process in family}
        assert len([left for left in leftovers.processes() if left.pid in ours]) == found
    finally:
        for process in reversed(family):
            process.kill()
        notebook.wait(300)
        notebook.stdout.close()


def test_the_folder_of_a_process_that_is_ended_goes_with_it_wherever_it_is(temporary, tmp_path_factory, monkeypatch):
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("elsewhere")))
        homes = [leftovers.make_home() for _ in range(2)]
    disown(homes[0])
    left = []
    for home in homes:  # the second one's owner is this process
        owner = (home / leftovers.OWNER_FILE).read_text().split("\n")[0]
        environment = {**os.environ, leftovers.HOME: str(home), leftovers.OWNER: owner}
        left.append(psutil.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=environment))
    assert eventually(lambda: all(leftovers.HOME in each.environ() for each in left))
    monkeypatch.setattr(leftovers, "processes", lambda: left)
    assert leftovers.clean() == 2
    assert [home.exists() for home in homes] == [False, True]


def test_what_is_left_is_ended_even_where_it_is_stopped_and_counted(temporary, monkeypatch):
    left = [psutil.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) for _ in range(2)]
    left[0].suspend()
    monkeypatch.setattr(leftovers, "processes", lambda: left)
    assert leftovers.clean() == 2
    assert [process.wait(300) for process in left] == [-signal.SIGKILL] * 2
