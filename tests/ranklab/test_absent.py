"""Hosts that are not there: asking is free, using them says why."""

import pytest

from ranklab.errors import WorldError
from ranklab.lab.absent import AbsentHosts


def test_hosts_that_are_not_there_are_an_empty_sequence():
    lab = AbsentHosts("This machine allows none.")
    assert not lab and len(lab) == 0
    assert repr(lab) == "no hosts: This machine allows none."
    assert not hasattr(lab, "_repr_html_")


@pytest.mark.parametrize("use", [lambda lab: lab[1], lambda lab: lab.rate("1gbit"), list])
def test_whoever_uses_them_is_told_why_there_are_none(use):
    with pytest.raises(WorldError, match="This machine allows none"):
        use(AbsentHosts("This machine allows none."))


def test_the_hosts_of_a_world_on_one_computer_are_not_there(notebook):
    world = notebook.names["world"]
    assert not world.hosts
    with pytest.raises(WorldError, match="share one computer"):
        world.hosts[1].cut()
