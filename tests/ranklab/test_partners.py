"""Ranks that lost others, where no rank died or raised another error: who had gone, and whether groups go on."""

import pytest
from launches import program

import ranklab
from ranklab.cells.panel import Panel
from ranklab.hangs import partners
from ranklab.hangs.report import GROUPS_GONE, summarise
from ranklab.outcome import RankOutcome
from ranklab.state import Collective, RankState

CLOSED = "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:23448. GLHF!"
LATE = "RuntimeError: [/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 3000ms for recv operation"
AFTERWARDS = "RuntimeError: Application timeout caused pair closure"
OWN = "ConnectionResetError: [Errno 104] Connection reset by peer"
DOWNLOAD = "ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))"
FILE = "TimeoutError: Timed out waiting for the file data.bin"
GROUP = {"0": [0, 1, 2]}


def state(done=None, groups=GROUP):
    """What a watchdog tells; ``done`` says of an all_reduce whether it has come back."""
    calls = [] if done is None else [Collective("0", 1, "all_reduce", [[1]], "float32", done)]
    return RankState(groups=groups, collectives=calls)


def raising(rank, error, seen=None):
    return RankOutcome(rank, state="raised", error=error, traceback=["line 1:  f()", error], seen=seen or state(False))


def report(*outcomes, what="cell"):
    return summarise(list(outcomes), "trouble", 6, [0, 1, 2], 3, what=what)


@pytest.mark.parametrize(
    ("error", "broken"),
    [(CLOSED, True), (LATE, True), (AFTERWARDS, True), (OWN, False), (DOWNLOAD, False), (FILE, False)],
)
def test_a_group_that_has_lost_a_rank_is_left_by_all_and_the_report_says_so(error, broken):
    ranks = [raising(0, error), RankOutcome(1, seen=state()), RankOutcome(2, seen=state())]
    assert partners.group_broken(ranks) == broken
    assert (GROUPS_GONE in report(*ranks).advice) == broken


def test_a_rank_in_no_group_has_none_to_leave():
    assert not partners.group_broken([raising(0, CLOSED, state(groups={}))])


def test_groups_are_not_said_to_be_gone_where_a_lost_connection_was_the_readers_own():
    result = report(raising(0, "ValueError: x"), raising(1, OWN))
    assert (result.ranks[1].state, result.advice) == ("raised", "")


@pytest.mark.parametrize("error", [DOWNLOAD, FILE])
def test_an_error_of_the_readers_own_network_is_the_headline_without_a_backends_hint(error):
    result = report(raising(0, error), RankOutcome(1, state="freed", seen=state(False)), RankOutcome(2, seen=state()))
    assert result.headline == f"rank 0 raised {error}" and result.cause == ""


def test_a_rank_that_has_left_the_group_is_named():
    waiting = RankOutcome(1, state="freed", seen=state(False))
    result = report(raising(0, CLOSED), waiting, RankOutcome(2, seen=state(groups={})))
    assert result.headline == "ranks 0, 1 waited for rank 2, which had left the process group."
    assert "destroy_process_group() on rank 2" in result.cause and "after the last of them" in result.fix
    assert result.ranks[2].note == "finished the cell: left the process group"


def test_a_rank_that_never_was_in_the_group_has_not_left_it():
    stranger = RankOutcome(2, seen=state(groups={}))
    result = report(raising(0, CLOSED, state(False, {"0": [0, 1]})), RankOutcome(1, seen=state()), stranger)
    assert result.headline.startswith("rank 0 raised RuntimeError: [gloo] Connection closed by peer")
    assert result.cause.startswith("another rank ended, left the group")


@pytest.mark.parametrize("error", [CLOSED, LATE, AFTERWARDS])
def test_a_rank_that_never_came_is_told_before_the_error_of_those_who_missed_it(error):
    waiting = RankOutcome(1, state="freed", seen=state(False))
    result = report(raising(0, error), waiting, RankOutcome(2, seen=state()))
    assert result.headline == "rank 1 waits in all_reduce for rank 2, which finished the cell without it."
    assert "a condition such as `if rank == 0:`" in result.cause


@pytest.mark.parametrize(
    ("error", "cause"), [(LATE, "as long as the timeout"), (AFTERWARDS, "an earlier call of this group timed out")]
)
def test_what_a_timeout_means_is_told(error, cause):
    result = report(raising(0, error), raising(1, error), RankOutcome(2, seen=state()))
    assert result.headline.startswith("ranks 0, 1 raised RuntimeError: ") and cause in result.cause and result.fix


def test_another_error_stays_the_cause():
    result = report(raising(0, CLOSED), raising(1, "ValueError: x"), RankOutcome(2, seen=state(groups={})))
    assert result.headline == "rank 1 raised ValueError: x"
    assert result.ranks[0].note == "waited for a rank that raised an error"


@pytest.mark.parametrize(("error", "told"), [(CLOSED, True), (LATE, False)])
def test_a_rank_of_a_program_that_ended_early_is_named_where_a_connection_to_it_was_lost(error, told):
    result = report(raising(0, error), RankOutcome(1), RankOutcome(2), what="program")
    named = result.headline == "rank 0 waited for ranks 1, 2, which had ended without an error."
    assert named == told == ("equally many steps" in result.fix)
    assert [entry.note for entry in result.ranks] == ["", *["ended without an error" * told] * 2]


UNEVEN = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(3 + (dist.get_rank() == 0)):
    dist.all_reduce(torch.ones(1))
"""


def test_a_job_with_uneven_steps_says_who_had_ended(tmp_path):
    run = ranklab.torchrun(program(tmp_path, UNEVEN), nproc_per_node=2, show=False)
    assert str(run.failure) == "rank 0 waited for rank 1, which had ended without an error."
    assert "Connection" in run.failure.error
    assert "rank 1   ended without an error" in Panel(run._outcome).text()


SETUP = """
import torch, torch.distributed as dist
from datetime import timedelta
if not dist.is_initialized():
    dist.init_process_group("gloo")
rank = dist.get_rank()
"""


def test_after_a_timeout_all_have_left_their_group_and_a_new_one_works(notebook):
    assert notebook.px(SETUP).error is None
    shown = notebook.px("if rank != 2: dist.monitored_barrier(timeout=timedelta(seconds=1))", "--timeout 20")
    assert "Rank 2 failed to pass monitoredBarrier" in shown.text and GROUPS_GONE in shown.text, shown.text
    assert notebook.px("print(dist.is_initialized())").text == "ranks 0–3   False"
    assert notebook.px(f"{SETUP}\nx = torch.ones(1)\ndist.all_reduce(x)\nprint(x.item())").text == "ranks 0–3   4.0"
