"""What learners' doctors have found, as an instructor reads it."""

import dataclasses
import json
import sys

import pytest

from bookkit.progress import console
from bookkit.teaching import ready
from ranklab.finding import OK, PROBLEM, WARNING, Finding

FINE = Finding("Python", OK, "3.11.")
SMALL = Finding("memory", PROBLEM, "300 MB are free.", "Close something.")
NO_HOSTS = Finding("hosts", WARNING, "There are no network namespaces.")


def answer(folder, name, *found, encoding="utf-8"):
    (folder / f"{name}.json").write_text(json.dumps([dataclasses.asdict(each) for each in found]), encoding=encoding)


def printed(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["ready", *map(str, words)])
    console.width = 160
    with console.capture() as said:
        status = ready.main()
    return status, said.get()


def test_who_needs_help_stands_first_with_the_fix(tmp_path, monkeypatch):
    answer(tmp_path, "ada", FINE)
    answer(tmp_path, "grace", FINE, NO_HOSTS, encoding="utf-8-sig")
    answer(tmp_path, "kurt", FINE, NO_HOSTS, SMALL)
    status, said = printed(monkeypatch, tmp_path)
    rows = [" ".join(line.split()) for line in said.splitlines()]
    assert rows[1] == "kurt no memory: 300 MB are free. Close something."
    assert rows[2].startswith("hosts: There are no network namespaces. what needs this says so")
    assert rows[3] == "ada yes"
    assert rows[4].startswith("grace partly hosts: There are no network namespaces.")
    assert rows[5] == "2 of 3 machines can run every chapter, but for what the warnings name."
    assert status == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"check": "Python"}]', "Ready for every chapter."])
def test_a_file_that_is_something_else_is_named(tmp_path, monkeypatch, capsys, text):
    answer(tmp_path, "ada", FINE)
    (tmp_path / "kurt.json").write_text(text)
    assert printed(monkeypatch, tmp_path)[0] == 1
    assert "kurt.json is not what" in capsys.readouterr().err


def test_an_empty_folder_and_no_folder_get_a_sentence(tmp_path, monkeypatch, capsys):
    assert printed(monkeypatch, tmp_path)[0] == 1
    assert "There is no answer in" in capsys.readouterr().err
    assert printed(monkeypatch)[0] == 2
    assert "Name the folder" in capsys.readouterr().err
