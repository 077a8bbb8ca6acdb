"""What ranks that wait are told, from plain data."""

import pytest

from ranklab.cells.panel import Panel
from ranklab.hangs import diagnosis, mismatch
from ranklab.hangs.report import summarise
from ranklab.outcome import CellOutcome, RankOutcome
from ranklab.state import Collective, RankState


def called(number, name="all_reduce", sizes=((4,),), kind="float32", done=True, group="0", backend="gloo"):
    """Return a collective as the recorder tells it."""
    return Collective(group, number, name, [*sizes], kind, done, backend=backend)


def told(*collectives, groups=None, **doing):
    return RankState(groups=groups or {"0": [0, 1, 2]}, collectives=list(collectives), **doing)


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (called(1), None),
        (called(1, sizes=((2, 2),)), None),  # as many numbers: gloo is content, and so is the result
        (called(2, sizes=((9,),)), None),  # another collective
        (called(1, sizes=((5,),)), "shape (4,) of float32 on rank 0, shape (5,) of float32 on rank 1"),
        (called(1, kind="int64"), "shape (4,) of float32 on rank 0, shape (4,) of int64 on rank 1"),
        (called(1, name="broadcast"), "collective 1: all_reduce on rank 0, broadcast on rank 1"),
    ],
)
def test_a_mismatch_is_a_difference_between_ranks(second, sentence):
    found = mismatch.find({0: told(called(1)), 1: told(second)})
    assert (found is None) if sentence is None else (sentence in found.sentence)


def test_operations_whose_inputs_may_differ_do():
    assert mismatch.find({0: told(called(1, "gather")), 1: told(called(1, "gather", sizes=()))}) is None


def test_groups_are_compared_on_their_own():
    groups = {"0": [0, 1, 2], "1": [0, 1]}
    first = told(called(1), called(1, "broadcast", group="1"), groups=groups)
    second = told(called(1), called(1, "barrier", sizes=(), group="1"), groups=groups)
    assert "collective 1 of the group of ranks 0, 1" in mismatch.find({0: first, 1: second}).sentence


def stuck(rank, call="", lines=("line 1:  x()",), peers=None, collectives=()):
    doing = {"busy": True, "lines": list(lines), "call": call, "peers": peers or {}, "stack": [call] if call else []}
    return RankOutcome(rank, state="freed", seen=told(*collectives, **doing))


def test_three_ranks_that_receive_in_a_circle():
    ranks = [stuck(rank, "torch.distributed.recv", peers={"src": (rank + 1) % 3}) for rank in range(3)]
    found = diagnosis.find(ranks)
    assert found.sentence.startswith("ranks 0–2 wait for each other: rank 0 receives from rank 1")


def test_of_a_chain_of_waiting_ranks_the_end_is_told():
    ranks = [stuck(rank, "torch.distributed.recv", peers={"src": (rank - 1) % 4}) for rank in (0, 3)]
    found = diagnosis.find([*ranks, RankOutcome(2, state="done")])
    assert found.sentence == "rank 3 receives from rank 2, which sends nothing and has finished the cell."
    assert found.fix == "write the matching call on rank 2."


def test_a_cut_cable_explains_why_messages_do_not_come():
    ranks = [stuck(rank, "torch.distributed.all_reduce", collectives=[called(1, done=False)]) for rank in range(2)]
    found = diagnosis.find(ranks, cut=[(1, "computer2")])
    assert found.sentence == "ranks 0, 1 wait for messages, and the cable of computer2 is cut."
    assert found.fix == "world.hosts[1].restore() puts the cable back."
    computing = diagnosis.find([stuck(0), stuck(1)], cut=[(1, "computer2")])
    assert "cable" not in computing.sentence


def test_two_ranks_that_send_to_each_other():
    ranks = [stuck(rank, "torch.distributed.send", peers={"dst": 1 - rank}) for rank in range(2)]
    assert diagnosis.find(ranks).cause == "nobody receives."


def test_a_root_that_differs():
    waiting = [
        stuck(rank, "torch.distributed.gather", collectives=[called(1, "gather", done=False)]) for rank in (0, 2)
    ]
    sent = RankOutcome(1, state="done", seen=told(called(1, "gather")))
    found = diagnosis.find([*waiting, sent])
    assert found.sentence == "ranks 0, 2 wait in gather, which all ranks of its group have called."
    assert found.cause == "the ranks may name different roots in dst=."
    assert found.fix == "give dst= the same value on every rank."


def test_of_a_group_that_nobody_told_it_is_not_said_that_all_came():
    waiting = stuck(0, "torch.distributed.gather", collectives=[called(1, "gather", done=False, group="7")])
    assert "all ranks of its group" not in diagnosis.find([waiting]).sentence


def test_sizes_that_differ_in_all_to_all():
    waiting = [stuck(0, "torch.distributed.all_to_all_single", collectives=[called(1, "all_to_all", done=False)])]
    done = [RankOutcome(rank, state="done", seen=told(called(1, "all_to_all"))) for rank in (1, 2)]
    assert "another size than its peer sends" in diagnosis.find([*waiting, *done]).cause


def test_a_rank_that_waits_for_something_that_is_no_rank():
    waiting = [stuck(rank, "torch.distributed.all_reduce", collectives=[called(2, done=False)]) for rank in (1, 2)]
    found = diagnosis.find([stuck(0, "queue.Queue.get", collectives=[called(1)]), *waiting])
    assert "rank 0 waits for something that is no rank, in queue.Queue.get." in found.cause
    assert found.fix.startswith("see what rank 0 waits for and why it does not come")


def test_a_rank_that_receives_while_the_others_are_in_a_collective():
    waiting = [
        stuck(rank, "torch.distributed.barrier", collectives=[called(1, "barrier", (), done=False)]) for rank in (0, 2)
    ]
    found = diagnosis.find([stuck(1, "torch.distributed.recv", peers={"src": 0}), *waiting])
    assert found.cause.endswith("and every recv a send; rank 1 receives from rank 0.")
    assert found.fix == "write the matching call on rank 0, or leave out the one that has none."


@pytest.mark.parametrize(
    "line", ["line 5:  req.wait()", "line 2 in f:  [w.wait() for w in works]", "line 1:  w.wait(time)"]
)
def test_ranks_that_wait_for_what_they_have_started(line):
    found = diagnosis.find([stuck(3, lines=(line,)), RankOutcome(0, state="done")])
    assert found.sentence == "rank 3 waits for what was started before, a message or a collective."
    assert "has no partner" in found.cause


def test_a_peer_that_waits_for_its_own_send():
    receiving = stuck(1, "torch.distributed.recv", peers={"src": 0})
    found = diagnosis.find([stuck(0, lines=("line 5:  req.wait()",)), receiving])
    assert found.sentence == "rank 1 receives from rank 0, which waits for what it has started before."
    assert found.cause.startswith("the send and the recv are not a pair")


def test_nothing_is_said_where_nobody_waits():
    assert diagnosis.find([RankOutcome(0), RankOutcome(1)]) is None


def test_a_member_of_a_subgroup_is_missed_and_no_stranger():
    groups = {"0": [0, 1, 2], "1": [0, 1]}
    waiting = stuck(0, "torch.distributed.all_reduce", collectives=[called(1, done=False, group="1")])
    waiting.seen.groups = groups
    found = diagnosis.find([waiting, RankOutcome(1, seen=told(groups=groups)), RankOutcome(2, seen=told())])
    assert found.sentence.startswith("rank 0 waits in all_reduce for rank 1,")
    assert found.notes[2] == "finished the cell"


def test_a_death_comes_before_the_errors_it_has_caused():
    gloo = "RuntimeError: [gloo] Connection closed by peer [127.0.0.1]."
    lost = RankOutcome(0, state="raised", error=gloo, traceback=["line 3:  f()", "in torch.distributed.f", gloo])
    dead = RankOutcome(1, state="died", exit_code=-9, last_line=2)
    result = summarise([lost, dead], "trouble", 3, [0], 2, "import os\nos.kill(1, 9)")
    assert result.headline == "rank 1 was killed by SIGKILL in line 2:  os.kill(1, 9)"
    assert Panel(result).text().splitlines()[2:4] == ["rank 0   line 3:  f()", "         waited for rank 1, which died"]


@pytest.mark.parametrize(("deadline", "advised"), [(5, 300), (250, 500), (900.5, 1801), (30 * 86_400, 30 * 86_400)])
def test_the_advised_deadline_is_longer_than_the_one_that_has_passed(deadline, advised):
    waiting = stuck(0, "torch.distributed.all_reduce", collectives=[called(1, done=False)])
    ranks = [waiting, stuck(1, lines=["line 2:  work()"]), stuck(2, lines=["line 2:  work()"])]
    result = summarise(ranks, "deadline", deadline, [0, 1, 2], 3)
    assert f"%%px --timeout {advised}." in result.fix


def test_a_signal_without_a_name_is_told_by_its_number():
    dead = RankOutcome(0, state="died", exit_code=-35)
    assert summarise([dead], "trouble", 3, [], 1).headline == "rank 0 was killed by signal 35."


def test_the_bytes_of_an_aborted_rank_are_told():
    words = "what():  [enforce fail at pair.cc:446] op.preamble.length <= op.nbytes. 20 vs 16"
    dead = RankOutcome(0, state="died", exit_code=-6, last_words=words)
    result = summarise([dead], "trouble", 3, [], 1)
    assert "sent it 20 bytes where it expected 16" in result.cause


def test_a_headline_has_the_first_sentence_of_a_long_error_and_the_ranks_that_begin_with_it():
    first = "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one."
    rest = "This error indicates that your module has parameters that were not used in producing loss. " * 2
    ranks = [RankOutcome(rank, state="raised", error=f"{first} {rest}\nFor rank {rank}: 1") for rank in range(2)]
    assert summarise(ranks, "trouble", 3, [0, 1], 2).headline == f"ranks 0, 1 raised {first}"
    short = RankOutcome(0, state="raised", error="ValueError: no. 7 is missing.")
    assert summarise([short], "trouble", 3, [0], 1).headline == "rank 0 raised ValueError: no. 7 is missing."


def test_details_are_folded_and_only_in_html():
    outcome = CellOutcome([RankOutcome(0)], headline="h", details=[([0], "in torch.distributed.recv")])
    assert "<details" in Panel(outcome).html()
    assert "torch.distributed.recv" not in Panel(outcome).text()


def test_groups_of_one_name_with_other_ranks_are_told():
    first = told(called(1, group="1", done=False), groups={"0": [0, 1, 2, 3], "1": [0, 1]})
    second = told(called(1, group="1", sizes=((3,),)), groups={"0": [0, 1, 2, 3], "1": [2, 3]})
    found = mismatch.unlike({0: first, 1: first, 2: second, 3: second})
    assert found.sentence == (
        "The ranks made different groups in one call of new_group: a group of ranks 0, 1 on ranks 0, 1, "
        "a group of ranks 2, 3 on ranks 2, 3."
    )
    assert "those too that it does not belong to" in found.fix


def test_a_group_of_which_a_rank_is_no_member_is_no_other_group():
    first = told(called(1, group="1", done=False), groups={"0": [0, 1, 2], "1": [0, 1]})
    assert mismatch.unlike({0: first, 1: first, 2: told(groups={"0": [0, 1, 2]})}) is None


def test_a_message_on_its_way_over_a_slow_cable_is_no_mistake():
    ends = [stuck(0, "torch.distributed.send", peers={"dst": 1}), stuck(1, "torch.distributed.recv", peers={"src": 0})]
    assert "not a pair" in diagnosis.find(ends).cause
    for entry in ends:
        entry.seen.sends = True
    assert "the bytes are still on their way" in diagnosis.find(ends).cause


def test_an_all_reduce_that_goes_on_below_a_reduce_scatter_keeps_its_name():
    pending = [called(1, done=False), called(2, done=False)]
    waiting = stuck(0, "torch.distributed.reduce_scatter", collectives=pending)
    ranks = [waiting, RankOutcome(1, seen=told()), RankOutcome(2, seen=told())]
    assert diagnosis.find(ranks).sentence.startswith("rank 0 waits in all_reduce for ranks 1, 2")


@pytest.mark.parametrize("function", ["reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single"])
def test_a_reduce_scatter_has_its_own_name_though_gloo_calls_another(function):
    waiting = [stuck(rank, f"torch.distributed.{function}", collectives=[called(1, done=False)]) for rank in (0, 2)]
    for entry in waiting:
        entry.seen.stack.insert(0, "typing_extensions.deprecated.__call__.<locals>.wrapper")
    found = diagnosis.find([*waiting, RankOutcome(1, seen=told())])
    assert found.sentence == f"ranks 0, 2 wait in {function} for rank 1, which finished the cell without it."
    assert found.fix.startswith(f"let rank 1 call {function} too")
    assert found.notes == {
        0: f"waits in {function}, collective 1, shape (4,) of float32",
        1: f"finished the cell: never called {function}",
        2: f"waits in {function}, collective 1, shape (4,) of float32",
    }


def test_ranks_are_not_compared_by_the_name_that_only_waiting_ranks_tell():
    waiting = stuck(0, "torch.distributed.reduce_scatter_single", collectives=[called(1, done=False)])
    apart = stuck(1, lines=("line 2:  work.wait()",), collectives=[called(1, done=False)])
    assert "disagree" not in diagnosis.find([waiting, apart]).sentence


def making(rank, call, groups):
    entry = stuck(rank, call)
    entry.seen.groups = {"0": [0, 1, 2, 3], **groups}
    return entry


def test_of_a_mesh_that_differs_on_one_rank_those_that_still_make_it_are_not_blamed():
    mesh, reduce = "torch.distributed.device_mesh.init_device_mesh", "torch.distributed.all_reduce"
    ranks = [making(0, mesh, {}), making(1, reduce, {"2": [1, 3]}), making(2, reduce, {}), making(3, mesh, {})]
    ranks[1].seen.collectives = [called(1, group="2", done=False)]
    ranks[2].seen.collectives = [called(1, done=False)]
    found = diagnosis.find(ranks)
    assert found.sentence == "ranks 0, 3 still make groups in init_device_mesh, and ranks 1, 2 are not in it."
    assert found.cause == "a rank has given init_device_mesh another shape than the others, or has not called it."
    assert found.fix == "call init_device_mesh on every rank, with the same shape."
    assert "init_device_mesh" not in diagnosis.find(ranks[1:3]).sentence


def test_ranks_that_make_a_group_with_one_to_which_the_cell_was_not_sent_are_told_that():
    waiting = making(1, "torch.distributed.all_reduce", {})
    waiting.seen.collectives = [called(1, done=False)]
    found = diagnosis.find([making(0, "torch.distributed.new_group", {}), waiting], size=3)
    assert found.sentence == "rank 1 waits in all_reduce for rank 2, to which this cell was not sent."
