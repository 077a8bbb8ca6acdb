"""What a watchdog answers comes to the notebook as it left the rank."""

import pytest

from ranklab.state import QUESTIONS, Collective, Pulse, RankState, read, write

FULL = RankState(
    lines=["line 2:  dist.recv(x, src=1)"],
    call="torch.distributed.recv",
    peers={"src": 1},
    stack=["torch.distributed.recv"],
    busy=True,
    seconds=1.5,
    pulse=Pulse(3, 70),
    groups={"0": [0, 1], "1": [1]},
    collectives=[
        Collective("0", 1, "all_reduce", [[4, 2]], "float32", done=True, recent=False),
        Collective("0", 2, "barrier", [], "", done=False),
    ],
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("where", FULL),
        ("where", RankState(stopped=True, goes_on=True)),
        ("cell", RankState()),
        ("pulse", Pulse(3, 70)),
        ("cut", 0),
    ],
)
def test_an_answer_arrives_as_it_was_given(question, answer):
    arrived = read(question, write(answer))
    assert arrived == answer and type(arrived) is type(answer)


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_answer_is_none(question):
    assert read(question, b"") is None  # the process has gone
    assert read(question, write(None)) is None  # its watchdog could not tell
