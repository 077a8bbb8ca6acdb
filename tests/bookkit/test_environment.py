import sys

import pytest

from bookkit import environment


def test_a_python_that_is_too_old_gets_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(environment.sys, "version_info", (3, 9, 1))
    assert environment.main(["some-folder"]) == 1
    assert "This is Python 3.9; the book needs Python 3.11 or newer" in capsys.readouterr().err


def test_a_fresh_environment_is_left_alone(tmp_path, monkeypatch, capsys):
    for name in environment.WANTED:
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python").touch()
    (tmp_path / "env" / environment.STAMP).write_text(environment.fingerprint())
    assert environment.main(["env"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", environment.WANTED)
def test_a_changed_wish_makes_it_stale(tmp_path, monkeypatch, name):
    for wanted in environment.WANTED:
        (tmp_path / wanted).write_text("")
    monkeypatch.chdir(tmp_path)
    before = environment.fingerprint()
    (tmp_path / name).write_text("torch==9\n")
    assert environment.fingerprint() != before


def test_an_existing_environment_is_used_as_it_is(capsys):
    assert environment.main(["--existing", sys.prefix]) == 0
    assert capsys.readouterr().out == ""


def test_what_is_no_environment_gets_a_sentence(tmp_path, capsys):
    assert environment.main(["--existing", str(tmp_path)]) == 1
    assert "holds no bin/python" in capsys.readouterr().err
