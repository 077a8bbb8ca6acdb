"""However `make run` is killed, nothing of it stays."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from bookkit.machine import places


def wait_for(condition, seconds=30):
    """Poll until ``condition()`` is true and return its value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"nothing happened in {seconds} s")


def role(process):
    """What a descendant of bookkit is."""
    command = " ".join(process.cmdline())
    roles = {"ipykernel_launcher": "kernel", "--guard": "guard", "sleep 300": "sleeper"}
    return next((name for part, name in roles.items() if part in command), command)


@pytest.fixture
def family(book, tmp_path):
    """A shell, bookkit below it, and all that bookkit started, as psutil processes."""
    beside = min(2, places())
    witnesses = [tmp_path / f"asleep-{number}" for number in range(beside)]
    for number, witness in enumerate(witnesses):
        # Beside the kernel a process that watches nobody, in a session of its own.
        book.run(
            f"chapter-{number}",
            "import pathlib, subprocess, time\nsubprocess.Popen(['sleep', '300'], start_new_session=True)",
            f"pathlib.Path({str(witness)!r}).touch()\ntime.sleep(300)",
        )
    command = [sys.executable, "-m", "bookkit", "--root", str(book.root), "run"]
    # The "; true" keeps the shell: alone, the command would replace it.
    shell = subprocess.Popen(["sh", "-c", '"$@"; true', "sh", *command], stdout=subprocess.DEVNULL)
    top = psutil.Process(shell.pid)
    members = [top]
    try:
        wait_for(lambda: all(witness.exists() for witness in witnesses), 120)
        (bookkit,) = top.children()
        below = bookkit.children(recursive=True)
        assert sorted(map(role, below)) == ["guard"] * beside + ["kernel"] * beside + ["sleeper"] * beside
        members += [bookkit, *below]
        yield top, bookkit, below
    finally:
        for member in members:
            if member.is_running():
                member.kill()
        shell.wait()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_survives_bookkit(family, signum):
    _, bookkit, below = family
    bookkit.send_signal(signum)
    assert not psutil.wait_procs([bookkit, *below], timeout=300)[1]


def test_nothing_survives_the_shell_or_make_above(family):
    top, bookkit, below = family
    top.send_signal(signal.SIGKILL)
    assert not psutil.wait_procs([bookkit, *below], timeout=300)[1]


def test_a_module_under_the_leash_runs_as_main_with_its_arguments(tmp_path):
    (tmp_path / "shown.py").write_text("import sys\nprint(__name__, sys.argv[1:])")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "bookkit.leash", "shown", "--now", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "__main__ ['--now', '1']\n"


def test_the_status_of_a_module_under_the_leash_is_its_own(tmp_path):
    (tmp_path / "ends.py").write_text("import sys; sys.exit(4)")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-m", "bookkit.leash", "ends"], env=environment, capture_output=True)
    assert done.returncode == 4


def test_a_leash_without_a_module_says_what_is_missing():
    done = subprocess.run([sys.executable, "-m", "bookkit.leash"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "Name the module to run: python -m bookkit.leash MODULE …\n"
