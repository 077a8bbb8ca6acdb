"""Claims about measured times: an error where the machine was quiet and the chapter is tested, a sentence elsewhere."""

import subprocess
import sys
import time

import psutil
import pytest
from support import eventually

import ranklab
from ranklab.errors import WorldError
from ranklab.system import load

judge = sys.modules["ranklab.measured"]  # the package offers the function under the module's name


@pytest.fixture
def told(monkeypatch):
    sentences = []
    monkeypatch.setattr(judge, "tell", sentences.append)
    return sentences


@pytest.fixture
def others(monkeypatch):
    """Play other programs that took this share of the processors."""

    def play(share):
        monkeypatch.setattr(load, "taken_by_others", lambda since, until: share)

    return play


def test_a_claim_that_holds_says_nothing(told, others):
    others(0.0)
    ranklab.measured(True, "two is more than one")
    assert told == []


def test_a_false_claim_on_a_quiet_machine_is_an_error_where_chapters_are_tested(told, others, monkeypatch):
    monkeypatch.setenv("IPP_NONINTERACTIVE", "1")
    others(0.02)
    with pytest.raises(AssertionError, match="quiet, and the run does not show that one is more than two"):
        ranklab.measured(False, "one is more than two")
    assert told == []


@pytest.mark.parametrize(
    ("share", "reason"), [(0.6, "other programs took 60% of the processors"), (0.0, "this machine is another one")]
)
def test_a_reader_gets_a_sentence_and_no_error(told, others, monkeypatch, share, reason):
    monkeypatch.delenv("IPP_NONINTERACTIVE", raising=False)
    others(share)
    ranklab.measured(False, "one is more than two")
    assert told == [
        f"This run does not show that one is more than two: {reason}. Run the cells again when the machine has time."
    ]


def test_a_busy_machine_proves_nothing_where_chapters_are_tested(told, others, monkeypatch):
    monkeypatch.setenv("IPP_NONINTERACTIVE", "1")
    others(0.3)
    ranklab.measured(False, "one is more than two")
    assert len(told) == 1


def test_ranks_leave_the_judgement_to_the_notebook(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(WorldError, match="The notebook judges"):
        ranklab.measured(True, "two is more than one")


BURN = [sys.executable, "-c", "while True: pass"]


def test_what_this_process_has_started_is_its_own():
    before = load.now()
    child = subprocess.Popen(BURN)
    try:
        assert eventually(lambda: load.now().own - before.own > 0.1)
        used = load.now().own - before.own
    finally:
        child.kill()
        child.wait()
    assert load.now().own - before.own >= used - 0.05  # also when it has ended


def test_another_program_is_one_of_the_others():
    quiet = "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"
    orphan = f"import subprocess; print(subprocess.Popen({BURN!r}, {quiet}).pid)"
    started = subprocess.run([sys.executable, "-c", orphan], capture_output=True, text=True, check=True)
    stranger = psutil.Process(int(started.stdout))
    try:
        before, used = load.now(), sum(stranger.cpu_times()[:2])
        time.sleep(1.5)
        after = load.now()
        used = sum(stranger.cpu_times()[:2]) - used
    finally:
        stranger.kill()
    assert (after.machine - before.machine) - (after.own - before.own) > 0.5 * used
    assert load.taken_by_others(before, after) > 0
