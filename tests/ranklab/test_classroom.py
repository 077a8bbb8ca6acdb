"""What a learner lets an instructor see: nothing without the folder, and never half a file."""

import json

import pytest

from ranklab import classroom
from ranklab.check.verdict import correct, grader, not_yet


@grader
def an_exercise(answer):
    """Grade the number seven."""
    return correct("it is.") if answer() == 7 else not_yet("it is not.")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKLAB_ROOM", str(tmp_path / "seen"))
    return tmp_path / "seen"


def told(path):
    content = json.loads(path.read_text())
    assert content.pop("at") > 0
    return content


def test_without_consent_nothing_is_written(folder, capsys):
    an_exercise(lambda: 7)
    classroom.tell_ranks(4)
    assert not folder.exists()
    assert capsys.readouterr().out == "Correct: it is.\n"


def test_without_the_variable_nothing_is_written(monkeypatch, tmp_path):
    monkeypatch.delenv("RANKLAB_ROOM", raising=False)
    monkeypatch.chdir(tmp_path)
    classroom.tell_ranks(4)
    assert list(tmp_path.iterdir()) == []


def test_verdicts_are_counted_and_what_was_solved_stays_solved(folder):
    folder.mkdir()
    path = folder / "exercise-an_exercise.json"
    an_exercise(lambda: 8)
    assert told(path) == {"tries": 1, "solved": False, "right": False, "words": "it is not."}
    an_exercise(lambda: 7)
    an_exercise(lambda: 6)
    assert told(path) == {"tries": 3, "solved": True, "right": False, "words": "it is not."}
    assert [each.name for each in folder.iterdir()] == [path.name]


def test_a_hang_is_told_until_the_next_cell(folder):
    folder.mkdir()
    classroom.tell_ranks(4, "After 3 s: rank 0 waits.")
    assert told(folder / "ranks.json")["hang"] == "After 3 s: rank 0 waits."
    classroom.tell_ranks(4)
    assert told(folder / "ranks.json")["hang"] == ""


@pytest.mark.parametrize("broken", ["", "{", "[1]", '{"tries": "x"}'])
def test_a_broken_file_is_written_anew(folder, broken):
    folder.mkdir()
    (folder / "exercise-an_exercise.json").write_text(broken)
    an_exercise(lambda: 7)
    assert told(folder / "exercise-an_exercise.json")["tries"] == 1


def test_a_folder_that_nobody_may_write_in_disturbs_no_verdict(folder, capsys, monkeypatch):
    folder.mkdir()

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(classroom, "_write", full)
    an_exercise(lambda: 7)
    assert capsys.readouterr().out == "Correct: it is.\n"
