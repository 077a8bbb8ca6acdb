"""Where a rank waits whose calls come back before they are done: told by the recorder, and not by the rank's stack.

There is no GPU here. The dumps are as torch's tests of NCCL's recorder show them, and the keys and stacks of an entry
are those of this very torch, whose recorder for CPUs has the same format.
"""

import json
import pickle
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from ranklab.hangs import diagnosis
from ranklab.outcome import RankOutcome
from ranklab.rank import queued, recorder, stacks
from ranklab.rank.trace import lines_of
from ranklab.state import Collective, RankState
from ranklab.system.backends import ON_CPUS, ON_GPUS

CELL = "/tmp/ipykernel_7/1234.py"  # bookkit: planted
LIBRARY = {"name": "all_reduce", "filename": pytest.__file__, "line": 3000}


def frame(line, name="<module>", file=CELL):
    return {"name": name, "filename": file, "line": line}


def entry(number, name, state="scheduled", group="0", frames=(), messages=0, retired=False):
    """Return what NCCL's recorder notes of a call; the number counts collectives, or messages where it is one."""
    is_p2p = bool(messages)
    return {
        "record_id": number,
        "process_group": (group, "default_pg"),
        "collective_seq_id": 0 if is_p2p else number,
        "p2p_seq_id": messages,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": 1000 + number,
        "input_sizes": [[4]],
        "input_dtypes": ["Float"],
        "state": state,
        "retired": retired,
        "is_p2p": is_p2p,
        "frames": [LIBRARY, *frames],
    }


class Group:
    """A process group of torch's, which counts its collectives."""

    def __init__(self, name, entries):
        self._numbers = lambda: [each["collective_seq_id"] for each in entries if each["process_group"][0] == name]

    def _get_sequence_number_for_group(self):
        return max(self._numbers(), default=0)


@pytest.fixture
def noted(monkeypatch):
    """Play a rank of two NCCL groups of three ranks whose recorder has noted some entries."""
    entries = []
    first, second = Group("0", entries), Group("1", entries)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    world = SimpleNamespace(
        pg_map={first: 0, second: 0},
        pg_names={first: "0", second: "1"},
        pg_group_ranks={first: {0: 0, 1: 1, 2: 2}, second: {0: 0, 2: 1}},
        pg_backend_config={first: "cuda:nccl", second: "cpu:gloo,cuda:nccl"},
    )
    core = SimpleNamespace(
        _dump_nccl_trace=lambda **_: pickle.dumps({"entries": entries}),
        _dump_nccl_trace_json=lambda **_: json.dumps({"entries": entries}),
    )
    monkeypatch.setitem(sys.modules, "torch._C._distributed_c10d", core)
    for module in (recorder, queued):
        monkeypatch.setattr(module, "torchs_groups", lambda: world)
    monkeypatch.setattr(queued, "_gone", 0)

    def note(*more):
        entries.extend(more)
        return world

    return note


def told(**how):
    """Return what the watchdog would tell of the rank."""
    return queued.explain(RankState(groups=recorder.groups(), collectives=recorder.collectives(0), **how), 0)


def test_a_rank_at_the_end_of_its_cell_waits_in_the_first_call_that_has_not_ended(noted):
    noted(
        entry(1, "all_reduce", "completed"),
        entry(2, "broadcast", frames=[frame(3)]),
        entry(3, "all_reduce", frames=[frame(4)]),
    )
    state = told(draining=True)
    assert state.lines == ["line 3"] and state.call == "torch.distributed.broadcast"
    assert [(called.name, called.done) for called in state.collectives] == [("all_reduce", True), ("broadcast", False)]
    assert RankState.read(json.loads(json.dumps(vars(state) | {"collectives": []}))).draining


def test_an_innocent_line_stays_the_line_and_the_call_is_named_beside_it(noted):
    noted(entry(1, "all_reduce", frames=[frame(9, "train"), frame(12)]))
    seen = told(lines=["line 5:  print(x)"], call="torch._tensor.Tensor.__repr__")
    assert seen.lines == ["line 5:  print(x)"]
    found = diagnosis.find([RankOutcome(0, state="freed", seen=seen), RankOutcome(1), RankOutcome(2)], 3)
    assert found.sentence == "rank 0 waits in all_reduce for ranks 1, 2, which finished the cell without it."
    assert found.notes[0].startswith("waits in all_reduce, collective 1 of group 0, shape (4,) of float32")
    assert found.notes[0].endswith(", called in line 9 in train")


@pytest.mark.parametrize(("title", "call", "peers"), [("send 0->1", "send", "dst"), ("recv 0<-1", "recv", "src")])
def test_a_message_names_its_peer_by_its_rank_and_not_by_its_number_in_the_group(noted, title, call, peers):
    noted(entry(1, title, group="1", messages=1, frames=[frame(2)]))
    state = told(draining=True)
    assert (state.call, state.peers) == (f"torch.distributed.{call}", {peers: 2})


def test_messages_of_a_batch_have_ended_when_the_batch_has(noted):
    entries = [entry(1, "send 0->1", messages=1), entry(2, "recv 0<-1", messages=1), entry(3, "coalesced", messages=1)]
    entries[2]["is_p2p"] = False
    noted(*entries)
    assert [(waiting.name, waiting.peer) for waiting in queued.unfinished()] == [("send", 1), ("recv", 1)]
    entries[2]["retired"] = True
    assert queued.unfinished() == []


def test_two_groups_in_crossed_order_are_told_as_on_cpus(noted):
    noted(entry(1, "all_reduce", frames=[frame(3)]), entry(2, "all_reduce", group="1", frames=[frame(3)]))
    states = [told(draining=True)]
    names = {"0": "1", "1": "0"}
    (called,) = states[0].collectives
    other = [Collective(names[called.group], 1, called.name, called.sizes, called.type, done=False)]
    states.append(RankState(lines=["line 3"], call="torch.distributed.all_reduce", collectives=other, draining=True))
    states[1].groups = states[0].groups = {"0": [0, 1], "1": [0, 1]}
    found = diagnosis.find([RankOutcome(rank, state="freed", seen=state) for rank, state in enumerate(states)], 2)
    assert found.sentence == "rank 0 waits in all_reduce for rank 1, still in line 3."
    assert "two groups in another order" in found.cause


def test_a_rank_whose_group_still_connects_its_ranks_is_in_that_call(noted):
    world = noted()
    next(iter(world.pg_map))._get_sequence_number_for_group = lambda: 1
    state = told(lines=["line 2"], call="torch.distributed.all_reduce", stack=["torch.distributed.all_reduce"])
    assert [(called.name, called.number, called.done) for called in state.collectives] == [("all_reduce", 1, False)]


def test_a_barrier_is_told_by_its_name(noted):
    noted(entry(1, "all_reduce_barrier", frames=[frame(2)]))
    assert told(draining=True).call == "torch.distributed.barrier"
    assert [(called.name, called.sizes) for called in told().collectives] == [("barrier", [])]


def test_a_backward_whose_calls_come_from_a_thread_of_torchs_has_no_line(noted):
    noted(entry(1, "all_reduce"))
    state = told(draining=True)
    assert state.lines == [] and state.call == "torch.distributed.all_reduce"


def test_what_groups_that_are_gone_had_called_is_not_waited_for(noted):
    noted(entry(1, "send 0->1", messages=1))
    queued.forget()
    assert queued.unfinished() == []


def test_progress_grows_with_what_is_called_and_with_what_ends(noted):
    assert queued.progress() == 0
    entries = [entry(1, "all_reduce"), entry(2, "all_reduce")]
    noted(*entries)
    called = queued.progress()
    entries[0]["state"] = "completed"
    assert queued.progress() > called > 0


def test_all_ranks_have_called_it_and_a_queue_is_long(noted):
    noted(entry(1, "all_reduce", frames=[frame(4)]))
    states = [told(draining=True), told(draining=True), told(draining=True)]
    found = diagnosis.find([RankOutcome(rank, state="freed", seen=state) for rank, state in enumerate(states)], 3)
    assert found.sentence == "ranks 0–2 wait in all_reduce, which every rank of the group has called."
    assert "queue" in found.cause and "--timeout" in found.fix


def test_a_kernel_that_does_not_end_is_told_as_such(noted):
    noted()
    busy, waiting = RankState(draining=True), RankState(groups={"0": [0, 1, 2]})
    alone = diagnosis.find([RankOutcome(1, state="freed", seen=busy)], 3)
    assert alone.sentence == "rank 1 has run all lines of the cell, and its work on the GPU has not ended."
    assert alone.notes[1] == "has run all lines, and waits for its GPU"
    waiting.collectives = [Collective("0", 1, "all_reduce", [[4]], "float32", False, lines=["line 2"])]
    both = [RankOutcome(0, state="freed", seen=waiting), RankOutcome(1, state="freed", seen=busy)]
    assert diagnosis.find(both, 2).sentence == "rank 0 waits in all_reduce for rank 1, whose GPU is still at work."


def test_ranks_on_cpus_are_not_asked(monkeypatch):
    world = SimpleNamespace(pg_backend_config={"group": "cpu:gloo"})
    monkeypatch.setattr(queued, "torchs_groups", lambda: world)
    state = RankState(draining=False)
    assert queued.explain(state, 0) is state and queued.progress() == 0
    assert not ON_CPUS.stacks and ON_GPUS.stacks


def test_lines_of_an_earlier_cell_are_told_as_such():
    other = CELL.replace("1234", "9")
    stack = [LIBRARY, frame(2, "helper", other), frame(7)]
    assert lines_of(stack, True) == ["line 7", "line 2 in helper (an earlier cell)"]
    assert lines_of(stack, False) == ["line 7 (an earlier cell)", "line 2 in helper (an earlier cell)"]
    assert lines_of([LIBRARY], True) == []


PROGRAM = """
import pickle, torch, torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
exec(compile("def train():\\n    dist.all_reduce(torch.ones(3))\\ntrain()", "ipykernel_1/77.py", "exec"))
import sys
from ranklab.rank.stacks import without_compiler
from ranklab.rank.trace import lines_of
with without_compiler():
    (entry,) = pickle.loads(torch._C._distributed_c10d._dump_fr_trace())["entries"]
print(lines_of(entry["frames"], True), sorted(entry))
print("torch._inductor" in sys.modules, "_inductor" in vars(torch))
"""


def test_this_torchs_recorder_notes_the_line_of_a_call_and_all_that_is_read():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("['line 3', 'line 2 in train']")
    assert all(repr(key) in run.stdout for key in entry(1, "all_reduce"))
    assert run.stdout.endswith("False False\n"), "torch's compiler takes seconds to load, and a watchdog has one"


def test_the_compiler_is_the_compiler_for_other_threads(monkeypatch):
    torch = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(stacks.importlib, "import_module", lambda name: SimpleNamespace(config=name))
    found = []
    with stacks.without_compiler():
        assert not hasattr(torch._inductor, "codecache")
        thread = threading.Thread(target=lambda: found.append(torch._inductor.config))
        thread.start()
        thread.join()
    assert found == ["torch._inductor"] and not hasattr(torch, "_inductor")
    torch._inductor = loaded = SimpleNamespace()
    with stacks.without_compiler():
        assert torch._inductor is loaded
    assert torch._inductor is loaded
