"""Waiting that knows the load: seconds count where the rank could have answered, and only then."""

import concurrent.futures
import math
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest
from support import eventually

from ranklab.cells import asking, deadlines, waiting
from ranklab.cells.deadlines import less_what_others_take, on_the_wall, while_ranks_could
from ranklab.cells.presses import Presses
from ranklab.hangs import report
from ranklab.live import Live
from ranklab.system import load, patience, starving
from ranklab.system.patience import Patience
from ranklab.system.starving import Starvation, Times

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's table of threads")


class Played:
    """Processes that waited for a processor as long as a test says, on a clock of its own.

    Attributes:
        share: of the time in which a process waits, by process id.
    """

    def __init__(self, monkeypatch, **clock):
        self.share: dict[int, float] = {}
        self.now = self.looked = 0.0
        monkeypatch.setattr(patience, "Starvation", lambda pids: self)
        monkeypatch.setattr(patience.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(patience.time, "sleep", self.sleep)
        monkeypatch.setattr(patience.concurrent.futures, "wait", lambda *_, timeout: self.sleep(timeout))

    def sleep(self, seconds):
        self.now += seconds

    def look(self):
        elapsed, self.looked = self.now - self.looked, self.now
        return elapsed, {pid: share * elapsed for pid, share in self.share.items()}


@pytest.fixture
def played(monkeypatch):
    return Played(monkeypatch)


def never():
    return concurrent.futures.Future()


def test_on_a_quiet_machine_patience_is_the_clock_on_the_wall(played):
    assert Patience({0: 100}).wait({0: never()}, 1.0) is False
    assert played.now == pytest.approx(1.0, abs=0.1)


def test_a_rank_without_a_processor_is_waited_for(played):
    played.share[100] = 0.9
    Patience({0: 100}).wait({0: never()}, 1.0)
    assert played.now == pytest.approx(10.0, abs=0.1)


def test_what_an_answer_passes_on_its_way_may_be_without_one_too(played):
    played.share[7] = 0.75
    Patience({0: 100}, helpers=[7]).wait({0: never()}, 1.0)
    assert played.now == pytest.approx(4.0, abs=0.1)


def test_each_rank_has_its_own_time(played):
    played.share[100] = 0.5
    began = Patience({0: 100, 1: 101})
    assert began.left([0, 1], 1.0) == 1.0
    played.sleep(1.0)
    assert began.left([1], 1.0) == 0.0
    assert began.left([0, 1], 1.0) == pytest.approx(0.5)


def test_patience_ends_at_the_ceiling_however_busy_the_machine_is(played):
    played.share[100] = 1.0
    Patience({0: 100}).wait({0: never()}, 1.0)
    assert played.now == pytest.approx(patience.CEILING, abs=0.2)


def test_replies_that_are_there_are_not_waited_for(played):
    reply = never()
    reply.set_result(1)
    assert Patience({0: 100}).wait({0: reply}, 1.0) is True
    assert played.now == 0


@pytest.fixture
def program():
    """Start a Python program; it is killed at the end."""
    started = []

    def start(code, nice=0):
        started.append(subprocess.Popen([sys.executable, "-c", code], preexec_fn=lambda: os.nice(nice)))
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


def watched(pid, seconds):
    """Return the share of some seconds in which a process waited for a processor."""
    follows = Starvation([pid])
    elapsed = waited = 0.0
    while elapsed < seconds:
        time.sleep(0.1)
        step, told = follows.look()
        elapsed, waited = elapsed + step, waited + told[pid]
    return waited / elapsed


SPIN = "while True: pass"


@LINUX
def test_one_of_many_on_one_processor_waits_most_of_the_time(program):
    core = min(os.sched_getaffinity(0))
    crowd = [program(f"import os; os.sched_setaffinity(0, {{{core}}})\n{SPIN}") for _ in range(6)]
    while any(psutil.Process(pid).cpu_affinity() != [core] for pid in crowd):
        time.sleep(0.05)
    assert watched(crowd[0], 2.0) > 0.5


@LINUX
def test_a_process_that_sleeps_waits_for_no_processor(program):
    pid = program("import time; time.sleep(600)")
    while psutil.Process(pid).status() != psutil.STATUS_SLEEPING:
        time.sleep(0.05)
    assert watched(pid, 1.0) < 0.5


@LINUX
def test_a_process_that_was_stopped_waits_for_no_processor(program):
    pid = program(SPIN)
    os.kill(pid, signal.SIGSTOP)
    while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.05)
    assert watched(pid, 1.0) < 0.2


def test_a_process_that_has_ended_never_waits():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert Starvation([process.pid]).look()[1] == {process.pid: pytest.approx(0.0, abs=0.5)}


def test_a_thread_that_was_ready_all_the_time_and_never_let_has_waited_all_of_it():
    before = Times(ran=5, waited=7, ready=True)
    assert starving._waited(before, before, 0.1) == 0.1
    assert starving._waited(before._replace(ready=False), before, 0.1) == 0.0
    # What it waited is told when it is let, and may be more than passed since the last look.
    assert starving._waited(Times(6, 10**9, True), before, 0.1) == 0.1


def test_a_wait_that_is_not_over_counts_where_the_thread_never_slept():
    before = Times(ran=0, waited=0, ready=True, slept=3)
    assert starving._waited(Times(10**9, 0, ready=True, slept=3), before, 4.0) == 3.0
    assert starving._waited(Times(10**9, 2 * 10**9, ready=True, slept=4), before, 4.0) == 2.0
    assert starving._waited(Times(10**9, 2 * 10**9, ready=False), before, 4.0) == 2.0


@pytest.mark.parametrize(("idle", "load", "share"), [(30, 64, 0), (0, 8, 0.75), (0, 1, 0)])
def test_without_linux_the_load_of_the_machine_has_to_do(monkeypatch, idle, load, share):
    monkeypatch.setattr(starving, "_is_told", lambda: False)
    monkeypatch.setattr(starving, "_idle_share", lambda: idle / 100)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0, 0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    elapsed, waited = Starvation([1]).look()
    assert waited[1] == pytest.approx(share * elapsed)


class Silent:
    """Processes whose watchdogs take so many seconds to answer."""

    def __init__(self, after):
        self.ready = time.monotonic() + after

    def pid(self, rank):
        return os.getpid()

    def ask(self, rank, question, timeout, more):
        while timeout and time.monotonic() < self.ready:
            time.sleep(max(0, min(timeout, self.ready - time.monotonic())))
            timeout = more()
        return {"busy": True} if time.monotonic() >= self.ready else None


def test_a_watchdog_that_has_no_processor_is_waited_for(monkeypatch):
    monkeypatch.setattr(Starvation, "look", lambda self: (0.0, {}))
    assert asking.ask(Silent(1.5), 0, "where") == {"busy": True}


def test_a_watchdog_that_had_one_and_says_nothing_is_silent():
    began = time.monotonic()
    assert asking.ask(Silent(60), 0, "where") is None
    assert time.monotonic() - began < 30


def test_nobody_is_asked_again_where_nobody_listens():
    class Gone:
        asked = 0

        def ask(self, *_):
            self.asked += 1

    gone = Gone()
    assert asking.ask(gone, 0, "where") is None
    assert gone.asked == 1


class Late(concurrent.futures.Future):
    """A reply that comes after some seconds on the wall."""

    def __init__(self, seconds):
        super().__init__()
        threading.Timer(seconds, lambda: self.set_result(None)).start()


class Elsewhere:
    """Processes of a world that always answers."""

    size = 4

    def pid(self, rank):
        return os.getpid()

    def helpers(self):
        return []

    def lost(self, thorough=False):
        return ""


@pytest.mark.parametrize(("deadline", "reason"), [(while_ranks_could, "finished"), (on_the_wall, "deadline")])
def test_a_grader_counts_the_seconds_that_the_ranks_could_have_used(monkeypatch, deadline, reason):
    looked = Starvation.look

    def never_let(self):
        elapsed, _ = looked(self)
        return elapsed, {os.getpid(): elapsed}

    monkeypatch.setattr(Starvation, "look", never_let)
    assert waiting.wait_for(Elsewhere(), {0: Late(1.5)}, 0.5, Live(), Presses(), deadline) == reason


def test_a_grader_ends_an_answer_that_had_its_time():
    assert waiting.wait_for(Elsewhere(), {0: never()}, 0.5, Live(), Presses(), while_ranks_could) == "deadline"


@pytest.mark.parametrize(
    ("others", "deadline", "reason"),
    [
        (0.9, less_what_others_take, "finished"),
        (0.0, less_what_others_take, "deadline"),
        (0.9, on_the_wall, "deadline"),
    ],
)
def test_an_ordinary_cell_is_not_hung_because_others_take_the_processors(monkeypatch, others, deadline, reason):
    monkeypatch.setattr(load, "taken_by_others", lambda since, until: others)
    monkeypatch.setattr(load, "_ready", lambda: 10 * others * os.cpu_count())
    assert waiting.wait_for(Elsewhere(), {0: Late(1.5)}, 0.5, Live(), Presses(), deadline) == reason


def test_an_ordinary_cell_that_hangs_ends_however_busy_the_machine_is(monkeypatch):
    monkeypatch.setattr(load, "taken_by_others", lambda since, until: 1.0)
    monkeypatch.setattr(load, "_ready", lambda: math.inf)
    monkeypatch.setattr(deadlines, "FAIR_CEILING", 1.0)
    assert waiting.wait_for(Elsewhere(), {0: never()}, 0.5, Live(), Presses(), less_what_others_take) == "deadline"


def test_a_hang_is_told_while_others_take_all_that_it_leaves(monkeypatch):
    monkeypatch.setattr(load, "taken_by_others", lambda since, until: 1.0)
    monkeypatch.setattr(load, "_ready", lambda: 3)  # which would leave a part to four ranks, if they asked
    began = time.monotonic()
    assert waiting.wait_for(Elsewhere(), {0: never()}, 0.5, Live(), Presses(), less_what_others_take) == "deadline"
    assert time.monotonic() - began >= 0.5 / min(1.0, os.cpu_count() / (3 + Elsewhere.size))


def test_those_that_are_ready_to_run_are_counted():
    def ready():
        crowd = load.Crowd()
        for _ in range(20):
            crowd.look()
            time.sleep(0.05)
        return crowd.share(1)

    assert load.Crowd().share(1) == 1.0
    assert load.Crowd().share(3 * os.cpu_count()) == pytest.approx(1 / 3)
    burn = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(burn) for _ in range(3 * os.cpu_count())]
    try:
        assert eventually(lambda: ready() < 0.4)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.parametrize(("starved", "reason"), [(True, "finished"), (False, "trouble")])
def test_others_may_finish_after_an_error_as_long_as_they_could_have(monkeypatch, starved, reason):
    looked = Starvation.look

    def look(self):
        elapsed, _ = looked(self)
        return elapsed, {os.getpid(): elapsed * starved}

    monkeypatch.setattr(Starvation, "look", look)
    failed = never()
    failed.set_exception(ValueError())
    assert waiting.wait_for(Elsewhere(), {0: failed, 1: Late(3)}, 60, Live(), Presses()) == reason


def test_nobody_is_overdue_who_was_not_let_or_whose_time_is_not_up(monkeypatch):
    had = 0.0
    monkeypatch.setattr(patience, "FairClock", lambda pids: lambda: had)
    monkeypatch.setattr(patience.time, "monotonic", lambda: wall)
    wall = 0.0
    late = patience.overdue(120, [])
    wall, had = 500.0, 119.0  # the processors were others' most of the time
    assert not late()
    had = 121.0
    assert late()
    wall = 119.0
    assert not late()


@pytest.mark.parametrize(
    ("took", "said"),
    [(5.1, []), (8.4, []), (23, ["The machine is busy: 5 s for these ranks took 23 s on the clock."])],
    ids=["in time", "a little late", "late"],
)
def test_why_a_deadline_came_late_is_told(monkeypatch, took, said):
    told: list[str] = []
    monkeypatch.setattr(deadlines, "tell", told.append)
    deadlines.tell_if_stretched(5, took)
    assert told == said


@pytest.mark.parametrize(("seconds", "busy"), [(5, False), (6, True)])
def test_the_line_while_a_cell_runs_says_why_its_deadline_waits(seconds, busy):
    headline = report.running([], {}, [0, 1], seconds, 5).headline
    assert headline == f"running for {seconds} s on ranks 0, 1, deadline 5 s" + (
        ": the machine is busy, so they get more" if busy else ""
    )
