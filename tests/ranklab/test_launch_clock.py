"""The clock of a launch: other programs that take the processors stop it, the ranks' own work does not."""

import subprocess
import sys
import time

import pytest

from ranklab.launch import clock, torchrun
from ranklab.system import load

SLEEP = "import sys; sys.stdin.read()"


@pytest.fixture
def launched():
    """Start a program a few times; all are ended after the test."""
    started = []

    def launch(program, times=1):
        for _ in range(times):
            started.append(subprocess.Popen([sys.executable, "-S", "-c", program], stdin=subprocess.PIPE))
        return [process.pid for process in started]

    yield launch
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def others(monkeypatch):
    """Play other programs that took this share of the processors."""

    def play(share):
        monkeypatch.setattr(load, "taken_by_others", lambda since, until: share)

    return play


@pytest.fixture
def starved(monkeypatch):
    """Play processes that waited for a processor all the time."""
    monkeypatch.setattr(clock, "LOOK", 0.05)
    monkeypatch.setattr(clock.Starvation, "look", lambda self: (1.0, dict.fromkeys(self._pids, 1.0)))


def used(pids, seconds=0.5):
    counting = clock.LaunchClock(pids)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        counting()
        time.sleep(0.01)
    return counting


def test_time_that_other_programs_took_does_not_count(launched, others, starved):
    others(0.9)
    counting = used(launched(SLEEP))
    before = counting._used
    counting._look()
    assert counting._used - before == pytest.approx(0.1)


def test_what_ranks_take_from_one_another_counts(launched, others, starved):
    others(0.0)
    counting = used(launched(SLEEP))
    before = counting._used
    counting._look()
    assert counting._used - before == pytest.approx(1.0)


def test_who_waits_for_no_processor_has_time_however_busy_the_machine_is(launched, others):
    others(1.0)
    pids = launched(SLEEP)
    counting = clock.LaunchClock(pids)
    counting._starvation.look = lambda: (1.0, dict.fromkeys(pids, 0.0))
    counting._look()
    assert counting._used == pytest.approx(1.0)


def test_the_clock_always_goes_on(launched, others, starved):
    others(1.0)
    counting = used(launched(SLEEP))
    before = counting._used
    counting._look()
    assert counting._used - before == pytest.approx(clock.SLOWEST)


def test_it_follows_what_its_processes_start(launched):
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'input()'])"
    (pid,) = launched(parent)
    counting = clock.LaunchClock([pid])
    until = time.monotonic() + 60
    while len(counting._starvation._pids) < 2 and time.monotonic() < until:
        time.sleep(0.05)
        counting._look()
    assert len(counting._starvation._pids) == 2 and pid in counting._starvation._pids


def test_processes_that_have_ended_do_not_stop_it(launched):
    (pid,) = launched("pass")
    time.sleep(1)
    assert used([pid], 0.2)() >= 0.2


def test_a_deadline_of_torchrun_goes_by_it(tmp_path, monkeypatch):
    """A launch whose clock stands still outlives its deadline on the wall."""

    class Still:
        def __init__(self, pids):
            list(pids)

        def __call__(self):
            return 0.0

    monkeypatch.setattr(clock, "LaunchClock", Still)
    script = tmp_path / "program.py"
    script.write_text("import time; time.sleep(1); print('done')")
    run = torchrun.torchrun(str(script), timeout=0.5, show=False)
    assert run.failure is None and run.outputs == ["done\n"]
