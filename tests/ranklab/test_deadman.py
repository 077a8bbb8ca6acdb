"""Nothing outlives its owner: kernels that are killed, interrupted or simply end."""

import signal

import psutil
import pytest
from support import eventually, owner, processes_of, stopwatch


def gone_in_time(processes: list[psutil.Process]) -> bool:
    """Say whether all have ended within five seconds that they could use; a zombie waits for the system to notice."""
    clock = stopwatch()

    def none_runs() -> bool:
        left = psutil.wait_procs(processes, timeout=0.1)[1]
        return not [process for process in left if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]

    return eventually(none_runs) and clock() < 5


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "stuck"])
def test_ranks_and_controller_end_when_their_owner_is_killed(number, busy):
    stuck = "world.view([0, 1]).execute('while True: pass', block=False); " if busy else ""
    process, home = owner(stuck + "time.sleep(600)")
    ours = processes_of(home)
    assert len(ours) >= 3
    process.send_signal(number)
    process.wait(300)
    assert gone_in_time(ours)
    assert processes_of(home) == []


def test_a_program_that_ends_without_stopping_leaves_nothing():
    process, home = owner("sys.exit(0)")
    ours = processes_of(home)
    process.wait(300)
    assert gone_in_time(ours)
