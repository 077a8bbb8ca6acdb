"""A clock that does not count the seconds in which a process waits for a processor."""

import contextlib
import os
import subprocess
import sys
import time

import psutil
import pytest
from support import eventually

from ranklab.system import starving
from ranklab.system.starving import FairClock, Starvation

COUNTED = os.path.exists("/proc/self/schedstat")


@contextlib.contextmanager
def two_on_one_core():
    """Two processes that both want one core; their process ids."""
    core = min(os.sched_getaffinity(0))
    program = f"import os; os.sched_setaffinity(0, [{core}]); print(flush=True)\nwhile True: pass"
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for each in started:
            each.stdout.readline()
        yield [each.pid for each in started]
    finally:
        for each in started:
            each.kill()
            each.wait()


@pytest.mark.skipif(not COUNTED, reason="this system does not count it")
def test_who_waits_for_a_processor_is_told_from_who_sleeps():
    with two_on_one_core() as (first, _):
        program = "import time; print(flush=True); time.sleep(60)"
        sleeper = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        try:
            sleeper.stdout.readline()
            assert eventually(lambda: psutil.Process(sleeper.pid).status() == psutil.STATUS_SLEEPING)
            starvation = Starvation([first, sleeper.pid])
            time.sleep(2)
            _, waited = starvation.look()
            assert waited[first] > 0.5
            assert waited[sleeper.pid] < 0.5
        finally:
            sleeper.kill()
            sleeper.wait()


@pytest.mark.skipif(not COUNTED, reason="this system does not count it")
def test_a_fair_clock_does_not_count_what_a_process_could_not_use():
    with two_on_one_core() as pids:
        clock, began = FairClock(pids), time.monotonic()
        while (passed := time.monotonic() - began) < 2:
            now = clock()
            time.sleep(0.05)
        assert now < 0.75 * passed


def test_a_fair_clock_goes_on_where_nobody_is_counted(monkeypatch):
    monkeypatch.setattr(starving, "_stolen", lambda: 0.0)  # what other virtual machines take counts for everybody
    clock, began = FairClock([0, 2**22 + 1]), time.monotonic()
    time.sleep(0.2)
    passed = time.monotonic() - began
    assert 0.2 <= clock() < passed + 0.2


def test_a_fair_clock_never_stops(monkeypatch):
    monkeypatch.setattr(Starvation, "look", lambda self: (0.2, {1: 0.2}))
    assert 0 < FairClock([1])() < 0.2
