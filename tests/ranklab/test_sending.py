"""Variables between the notebook and the ranks: one sentence where they do not arrive."""

import threading
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from ipyparallel.error import CompositeError
from ipyparallel.serialize import deserialize_object

from ranklab.errors import WorldError
from ranklab.sending import answers, pickled

LOCK = "TypeError", "cannot pickle '_thread.lock' object"
DIED = "EngineError", "Engine 2 died while running task '9c31'", "Traceback …", {}


class Reply(Future):
    """ipyparallel's, of ranks that have answered already."""

    def wait(self, timeout):
        assert timeout == 5

    def ready(self):
        return self.done()

    def get(self):
        return self.result()


def told(errors, alive=(0, 1, 2)):
    """What is said of these errors of three ranks."""
    reply = Reply()
    reply.set_exception(CompositeError("one or more exceptions raised in: read_variable", errors))
    processes = SimpleNamespace(size=3, alive=lambda: list(alive))
    with pytest.raises(WorldError) as raised:
        answers(reply, 5, processes, "'lock' cannot be sent from")
    return str(raised.value)


def raised_on(rank, error=LOCK):
    return *error, "Traceback …", {"engine_id": rank, "method": "apply"}


def test_what_ranks_cannot_send_is_named_with_the_ranks():
    sentence = "'lock' cannot be sent from {}: TypeError: cannot pickle '_thread.lock' object."
    assert told([raised_on(rank) for rank in range(3)]) == sentence.format("ranks 0–2")
    assert told([raised_on(1)]) == sentence.format("rank 1")


def test_of_different_errors_the_first_is_told_on_one_line():
    other = "RuntimeError", "CUDA error:\n  device-side assert"
    assert told([raised_on(1, other), raised_on(2)]) == (
        "'lock' cannot be sent from rank 1: RuntimeError: CUDA error: device-side assert."
    )


def test_a_death_is_told_before_other_errors():
    sentence = "rank 2 died before answering. The next cell starts rank 2 again, without variables."
    assert told([raised_on(0), DIED], alive=(0, 1)) == sentence


def test_answers_come_as_they_are_and_a_silence_is_told():
    reply = Reply()
    with pytest.raises(WorldError, match="The ranks did not answer within 5 s: is a cell still running there"):
        answers(reply, 5, SimpleNamespace(), "")
    reply.set_result([1, 2])
    assert answers(reply, 5, SimpleNamespace(), "") == [1, 2]


def test_a_variable_that_cannot_be_pickled_is_named():
    with pytest.raises(WorldError) as raised:
        pickled({"gift": 1, "lock": threading.Lock()})
    assert str(raised.value) == f"'lock' cannot be sent to the ranks: {': '.join(LOCK)}."


def test_what_is_pickled_arrives():
    ready = pickled({"gift": {"b": [1, 2], "a": None}, "add": len})
    assert deserialize_object(ready["gift"].buffers)[0] == {"b": [1, 2], "a": None}
    assert deserialize_object(ready["add"].buffers)[0]([1]) == 1
