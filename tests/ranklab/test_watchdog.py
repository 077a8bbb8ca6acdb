"""The watchdog outlives its own errors, and the driver asks for nothing where there is nobody to ask."""

import threading
import time
from types import SimpleNamespace

from ranklab.cells import waiting
from ranklab.cells.recovery import ask_all
from ranklab.engines.asking import ask
from ranklab.live import Live
from ranklab.rank import recorder
from ranklab.rank.watchdog import Watchdog
from ranklab.state import QUESTIONS, Pulse, RankState


class Group:
    def _get_sequence_number_for_group(self):
        return 1


def test_a_group_that_is_being_destroyed_is_left_out(monkeypatch):
    stays, goes = Group(), Group()
    tables = {"pg_map": {stays: 0, goes: 0}, "pg_names": {stays: "0"}, "pg_group_ranks": {stays: {1: 0, 0: 1}}}
    monkeypatch.setattr(recorder, "torchs_groups", lambda: SimpleNamespace(**tables))
    monkeypatch.setattr(recorder, "_entries", lambda: [])
    assert recorder.groups() == {"0": [0, 1]}
    assert recorder.collectives() == []


def test_what_an_earlier_group_of_the_same_name_has_called_is_left_out(monkeypatch):
    """The present group has one call, a receive, and receives are in no recorder."""
    tables = {"pg_map": {(group := Group()): 0}, "pg_names": {group: "0"}}
    noted = {"process_group": ["0"], "input_sizes": [[4]], "input_dtypes": ["Float"], "retired": True}
    entries = [noted | {"collective_seq_id": 1, "profiling_name": "gloo:all_reduce", "time_created_ns": 50}]
    monkeypatch.setattr(recorder, "torchs_groups", lambda: SimpleNamespace(**tables))
    monkeypatch.setattr(recorder, "_entries", lambda: entries)
    monkeypatch.setattr(recorder, "_made", {"0": 40})
    assert [called.name for called in recorder.collectives()] == ["all_reduce"]
    monkeypatch.setattr(recorder, "_made", {"0": 60})
    assert recorder.collectives() == []


def test_a_watchdog_answers_after_an_error_of_its_own(tmp_path, monkeypatch, capfd):
    def fails(self):
        raise KeyError("destroyed")

    monkeypatch.setattr(Watchdog, "where", fails)
    path = tmp_path / "watchdog"
    Watchdog(path)
    assert ask(path, "where") is None
    assert "KeyError: 'destroyed'" in capfd.readouterr().err
    assert isinstance(ask(path, "pulse"), Pulse)


def test_a_late_answer_comes_to_the_question_that_was_asked_once(tmp_path, monkeypatch):
    """Asked anew, a watchdog without a processor answers the old questions first, and never comes to the last one."""
    answers = []

    def late(self):
        time.sleep(0.3)
        answers.append(RankState())
        return answers[-1]

    monkeypatch.setattr(Watchdog, "where", late)
    path = tmp_path / "watchdog"
    Watchdog(path)
    assert ask(path, "where", 0.05, lambda: 0.05) == RankState()
    assert ask(path, "where", 0.05, iter([0.05, 0]).__next__) is None
    assert len(answers) == 1  # the second question is answered to nobody, later


def test_a_question_that_nobody_waits_for_is_not_answered(tmp_path, monkeypatch):
    asked, answered, free = threading.Event(), [], threading.Event()

    def waits(self):
        answered.append(1)
        asked.set()
        free.wait(300)
        return RankState()

    monkeypatch.setattr(Watchdog, "where", waits)
    path = tmp_path / "watchdog"
    Watchdog(path)
    first = threading.Thread(target=ask, args=(path, "where", 60))
    first.start()
    assert asked.wait(300)
    assert [ask(path, "where", 0.01) for _ in range(5)] == [None] * 5
    free.set()
    first.join()
    assert isinstance(ask(path, "pulse", 60), Pulse)
    assert len(answered) == 1


def test_a_watchdog_can_answer_every_question(tmp_path):
    path = tmp_path / "watchdog"
    watchdog = Watchdog(path)
    assert isinstance(ask(path, "where"), RankState) and ask(path, "cell") == RankState()
    assert not ask(path, "where").busy
    assert set(watchdog.answers) == set(QUESTIONS)
    assert ask(path, "what?") is None


def test_nobody_is_asked_once_all_ranks_are_done(monkeypatch):
    live = Live(after=0)
    monkeypatch.setattr(live, "due", lambda: True)
    monkeypatch.setattr(live, "show", lambda bundle: 1 / 0)
    waiting._show(None, {0: SimpleNamespace(done=lambda: True)}, 1, live)
    assert ask_all(None, [], "where") == {}
