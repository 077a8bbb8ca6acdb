"""What a reader sees while ranks start: something from the first seconds on, and nothing of it afterwards."""

from __future__ import annotations

import re
import threading
import time

import pytest

from ranklab import live
from ranklab.engines import processes
from ranklab.engines.processes import Processes
from ranklab.engines.progress import Progress

ERASED = "\r\x1b[2K"


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Somebody watches a terminal; returns what was shown there, one text after the other."""
    monkeypatch.setattr(live, "_audience", lambda: "terminal")
    return lambda: capsys.readouterr().err.split(ERASED)[1:]


def lines(seen: list[str]) -> list[str]:
    """The lines without their seconds, each once."""
    return list(dict.fromkeys(re.sub(r", \d+ s$", "", text) for text in seen))


def test_what_is_waited_for_is_shown_while_nothing_comes_back(terminal):
    with Progress("looking", after=0) as progress:
        time.sleep(0.7)
        progress.now("importing")
        time.sleep(0.7)
    assert lines(terminal()) == ["looking", "importing", ""]


def test_what_is_quick_is_not_shown(terminal):
    with Progress("looking"):
        pass
    assert terminal() == []


def test_an_error_takes_the_line_away(terminal):
    with pytest.raises(KeyError), Progress("looking", after=0):
        time.sleep(0.7)
        raise KeyError
    assert terminal()[-1] == ""


def test_nobody_watches_and_no_thread_runs(monkeypatch, capsys):
    monkeypatch.setenv("IPP_NONINTERACTIVE", "1")
    with Progress("looking", after=0):
        assert "progress" not in [thread.name for thread in threading.enumerate()]
        time.sleep(0.3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("slow", "doing"),
    [
        ("leftovers.clean", "looking at this machine"),
        ("make_cluster", "loading ipyparallel"),
        ("make_network", "importing torch"),
    ],
)
def test_a_slow_start_says_what_it_waits_for(terminal, monkeypatch, slow, doing):
    owner, name = (processes.leftovers, "clean") if "." in slow else (processes, slow)
    real = getattr(owner, name)

    def slowly(*arguments):
        time.sleep(2)
        return real(*arguments)

    monkeypatch.setattr(owner, name, slowly)
    Processes([1]).stop()
    shown = terminal()
    assert doing in lines(shown) and shown[-1] == ""
