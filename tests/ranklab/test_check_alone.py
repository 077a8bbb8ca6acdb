"""A notebook with one rank: graders that make groups say what to do, whatever the answer is."""

from types import SimpleNamespace

import pytest

from ranklab import check
from ranklab.check import worlds

GROUPED = (check.accuracy, check.chain, check.hand_over, check.launched_at, check.mean_gradient, check.shift)


@pytest.mark.parametrize("grader", GROUPED, ids=lambda grader: grader.__name__)
def test_a_world_of_one_rank_is_told_what_to_do(capsys, monkeypatch, grader):
    monkeypatch.setattr(worlds, "current", lambda: SimpleNamespace(size=1))  # it has nothing else: no rank is asked
    grader(lambda *arguments: None)
    assert capsys.readouterr().out == (
        "Not yet. This exercise needs at least two ranks: world.stop(), then world = ranklab.start(4).\n"
    )
