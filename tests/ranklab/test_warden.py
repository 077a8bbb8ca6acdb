"""The warden alone: its command's status, and no process after it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ranklab.launch.agents import WARDEN

# A child with a session of its own, as torchrun gives one to each rank; it prints its process id.
LEAVES_A_CHILD = (
    "import subprocess, sys\n"
    "child = subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=subprocess.DEVNULL)\n"
    "print(child.pid, flush=True)\n"
)


def start(code, folder):
    command = [*WARDEN, str(folder), sys.executable, "-c", code]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("status", [0, 3])
def test_it_ends_with_the_status_of_its_command(tmp_path, status):
    warden = start(f"import sys; sys.exit({status})", tmp_path)
    assert warden.wait(300) == status
    warden.stdin.close()


def test_it_runs_where_pythonpath_leads_to_its_library(tmp_path):
    """As on clusters whose modules set it, and for what ``pip install --user`` has installed."""
    bare = str(Path(sys.base_prefix, "bin", "python3"))
    if subprocess.run([bare, "-I", "-c", "import psutil"], capture_output=True, check=False).returncode == 0:
        pytest.skip("the interpreter below this environment has psutil")
    environment = os.environ | {"PYTHONPATH": str(Path(psutil.__file__).parents[1])}
    command = [bare, *WARDEN[1:], str(tmp_path), bare, "-c", "import sys; sys.exit(3)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, start_new_session=True) as warden:
        assert warden.wait(300) == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_it_ends_by_the_signal_that_ended_its_command(tmp_path, number):
    warden = start(f"import os; os.kill(os.getpid(), {int(number)})", tmp_path)
    assert warden.wait(300) == -number
    warden.stdin.close()


@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_CHILD_SUBREAPER")
def test_what_the_command_leaves_behind_is_ended(tmp_path):
    warden = start(LEAVES_A_CHILD, tmp_path)
    child = int(warden.stdout.readline())
    assert warden.wait(300) == 0 and gone(child)
    warden.stdin.close()


@pytest.mark.parametrize("how", ["close", signal.SIGTERM, signal.SIGINT])
def test_everything_ends_when_it_is_told_to(tmp_path, how):
    warden = start(LEAVES_A_CHILD + "import signal; signal.pause()", tmp_path)
    child = int(warden.stdout.readline())
    if how == "close":
        warden.stdin.close()
    else:
        os.kill(warden.pid, how)
    warden.wait(300)
    assert gone(child) and tmp_path.exists()  # its owner still wants to read the folder
    warden.stdin.close()
