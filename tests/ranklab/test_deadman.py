"""Nothing outlives its owner: kernels that are killed, interrupted or simply end."""

import signal

import psutil
import pytest
from support import owner, processes_of


def still_running(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Return the processes that still run; a zombie has ended and waits for the system to take notice."""
    left = psutil.wait_procs(processes, timeout=seconds)[1]
    return [process for process in left if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "stuck"])
def test_ranks_and_controller_end_when_their_owner_is_killed(number, busy):
    stuck = "world.view([0, 1]).execute('while True: pass', block=False); " if busy else ""
    process, home = owner(stuck + "time.sleep(600)")
    ours = processes_of(home)
    assert len(ours) >= 3
    process.send_signal(number)
    process.wait(10)
    assert still_running(ours, 5) == []
    assert processes_of(home) == []


def test_a_program_that_ends_without_stopping_leaves_nothing():
    process, home = owner("sys.exit(0)")
    ours = processes_of(home)
    process.wait(20)
    assert still_running(ours, 5) == []
