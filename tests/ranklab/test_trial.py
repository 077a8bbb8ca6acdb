"""A program that is tried has its seconds even where others take the processors, and no more than that elsewhere."""

import os
import subprocess
import sys
import time

import pytest
from support import eventually

from ranklab.system import trial

BURN = "while True: pass"


def started(program):
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)


def test_the_last_line_says_what_went_wrong():
    wrong = started("import sys; print('first', file=sys.stderr); sys.exit('all_reduce of 1 numbers came out wrong.')")
    assert trial.finish([wrong, started("")], 60).problem == "all_reduce of 1 numbers came out wrong."
    assert trial.finish([started("import os; os._exit(3)")], 60).problem == "exit status 3"
    assert trial.finish([started("")], 60) == trial.Trial()


def test_a_program_that_waits_for_ever_is_ended_after_its_seconds():
    child, began = started("import time; time.sleep(600)"), time.monotonic()
    ended = trial.finish([child], 1.0)
    assert ended == trial.Trial("no answer within 1 s.")
    assert child.returncode < 0
    assert time.monotonic() - began < 45


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="this system does not tell who waits")
def test_a_program_that_is_not_let_has_its_seconds_all_the_same():
    core = min(os.sched_getaffinity(0))
    pin = f"import os; os.sched_setaffinity(0, [{core}])\n"
    burners = [started(pin + BURN) for _ in range(4)]
    try:
        # It gets a thirteenth of its core (weights of sched_setscheduler(2): 335 of 4431): its work takes three
        # seconds, and it has one and a half.
        child = started(pin + "import time; os.nice(5)\nwhile time.process_time() < 0.25: pass")
        began = time.monotonic()
        assert trial.finish([child], 1.5, ceiling=300) == trial.Trial()
        assert time.monotonic() - began > 1.5
    finally:
        for burner in burners:
            burner.kill()
            burner.communicate()


def test_where_others_take_the_processors_nothing_is_shown(monkeypatch):
    class Starved:
        def __init__(self, pids):
            self.pids, self.began = list(pids), time.monotonic()

        def look(self):
            elapsed = time.monotonic() - self.began
            return elapsed, dict.fromkeys(self.pids, elapsed)

    monkeypatch.setattr(trial, "Starvation", Starved)
    monkeypatch.setattr(trial.load, "taken_by_others", lambda since, until: 0.8)
    ended = trial.finish([started("import time; time.sleep(600)")], 0.1, ceiling=1.0)
    assert ended.busy
    assert ended.problem == (
        "did not finish within 1 s; the machine is busy (other programs take 80% of the processors)."
    )


def test_what_a_program_has_started_counts_as_well():
    child = started("import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])")
    try:
        assert eventually(lambda: len(trial._family([child])) == 2)
        grandchild = trial._family([child])[1]
    finally:
        os.kill(grandchild, 9)
        child.kill()
        child.communicate()
    assert trial._family([child]) == []
