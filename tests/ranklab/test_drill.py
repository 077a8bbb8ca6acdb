"""Every drill of the catalogue, played: what its job leaves, the right answer, and that nothing is left running."""

import contextlib
import os
import re
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from support import eventually, steady

import ranklab
from ranklab.drills import job
from ranklab.drills.catalogue import CAUSES, FAULTS, Case
from ranklab.drills.drill import Drill
from ranklab.drills.fault import ANYWHERE
from ranklab.errors import RanklabError, WorldError

SEEDS = range(20)
AT_ONCE = 4


@pytest.fixture(scope="module")
def played():
    """The drills of twenty seeds, which hold every fault once."""
    with ThreadPoolExecutor(AT_ONCE) as players:
        return dict(zip(SEEDS, players.map(ranklab.drill, SEEDS), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_reference_answer_is_right(played, seed):
    case, drill = Case(seed), played[seed]
    line = case.program.guilty[0] if case.program.guilty else None
    verdict = drill.answer(rank=case.at.guilty, line=line, cause=case.fault.cause)
    assert verdict.right and drill.solved, verdict
    assert str(verdict).startswith("Correct. ") and f"rank {case.at.guilty} " in str(verdict).lower()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_other_rank_is_told_why_it_is_not_to_blame(played, seed):
    case, drill = Case(seed), played[seed]
    for rank in set(range(4)) - {case.at.guilty}:
        line = case.program.guilty[0] if case.program.guilty else None
        verdict = drill.answer(rank=rank, line=line, cause=case.fault.cause)
        assert not verdict.right and f"Rank {rank} " in verdict.words
        assert "The cause that you name is right." in verdict.words


@pytest.mark.parametrize("seed", SEEDS)
def test_the_guilty_rank_is_seen_where_its_fault_leads_it(played, seed):
    case, drill = Case(seed), played[seed]
    guilty = drill._scenes[case.at.guilty]
    if case.fault.outside or case.fault.stands == ANYWHERE:
        assert guilty.exit_code is not None or guilty.silent
        return
    assert guilty.line in case.program.stands
    assert f"line {guilty.line}, " in drill.stacks(case.at.guilty)
    # All others wait somewhere in torch.
    for rank in set(range(4)) - {case.at.guilty}:
        assert "torch.distributed.distributed_c10d, in " in drill.stacks(rank)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_line_is_right_to_which_the_guilty_rank_did_not_come(played, seed):
    case, drill = Case(seed), Drill(Case(seed), played[seed]._scenes)
    stack = drill._scenes[case.at.guilty].lines
    for line in set(case.program.stands) - set(stack):
        assert not drill.answer(rank=case.at.guilty, line=line, cause=case.fault.cause).right


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sign_of_a_skipped_collective_is_true_of_it_and_of_no_fault_of_another_kind(played, seed):
    case, scenes = Case(seed), played[seed]._scenes
    guilty = scenes[case.at.guilty]
    steps = [int(step) for step in re.findall(r"^step (\d): loss", guilty.log, re.M)]
    missing = steps != list(range(len(steps)))
    latest = [scene.dump().splitlines()[-1].split() for scene in scenes]
    own = latest.pop(case.at.guilty)
    # The n-th call of one rank meets the n-th of the others: their numbers are equal.
    meets = own[1] == "barrier" and all(each[:2] == [own[0], "all_reduce"] for each in latest)
    skips = case.fault.cause in ("skipped collective", "exception swallowed")
    assert (missing and meets) == skips
    if case.fault.cause == "skipped collective":
        assert case.program.lines[case.program.guilty[0] - 1].strip().startswith("if ")


def test_a_seed_is_the_same_drill_everywhere():
    drawn = [(Case(seed).fault.cause, Case(seed).at.guilty, Case(seed).program.guilty) for seed in (0, 4, 9, 13)]
    assert drawn == [
        ("send without receive", 3, (33, 34)),
        ("skipped collective", 1, (26, 27)),
        ("loader ends early", 3, (23,)),
        ("stopped from outside", 2, ()),
    ]


def test_seeds_in_a_row_hold_every_fault_once():
    for block in range(3):
        assert sorted(Case(20 * block + n).fault.cause for n in range(20)) == sorted(CAUSES)
    assert len(set(CAUSES)) == len(FAULTS) == 20


@pytest.mark.parametrize("seed", range(100))
def test_programs_look_alike_and_compile(seed):
    program = Case(seed).program
    compile(program.text, "program.py", "exec")
    assert 30 <= len(program.lines) <= 54 and max(map(len, program.lines)) <= 80
    assert not re.search(r"#[!?=]", program.text)
    for line in program.guilty:
        assert program.lines[line - 1].strip()


def test_a_killed_rank_is_named_by_its_signal_and_its_partners_log_why_they_ended(played):
    seed = next(seed for seed in SEEDS if Case(seed).fault.cause == "killed from outside")
    drill, guilty = played[seed], Case(seed).at.guilty
    assert drill.stacks(guilty) == f"rank {guilty} has ended: its process was ended by SIGKILL."
    assert "Traceback" not in drill.log(guilty)
    for rank in set(range(4)) - {guilty}:
        assert drill.stacks(rank) == drill.dump(rank) == f"rank {rank} has ended with exit status 1."
        assert "Traceback (most recent call last)" in drill.log(rank) and "program.py" in drill.log(rank)
        assert "drilled.py" not in drill.log(rank)


def test_a_stopped_rank_does_not_answer(played):
    seed = next(seed for seed in SEEDS if Case(seed).fault.cause == "stopped from outside")
    guilty = Case(seed).at.guilty
    assert played[seed].stacks(guilty) == f"rank {guilty} does not answer. The system says: state T (stopped)."


def test_the_dump_of_crossed_groups_shows_both_groups(played):
    seed = next(seed for seed in SEEDS if Case(seed).fault.cause == "groups crossed")
    told = played[seed].dump(Case(seed).at.guilty)
    assert "group 0 (ranks 0, 1, 2, 3)" in told and told.count("(ranks ") == 2


def test_the_dump_of_a_send_does_not_show_it(played):
    seed = next(seed for seed in SEEDS if Case(seed).fault.cause == "send without receive")
    guilty = Case(seed).at.guilty
    assert "dist.send(" in played[seed].stacks(guilty) and "send" not in played[seed].dump(guilty)


def test_a_drill_that_was_played_is_not_started_again(played, monkeypatch):
    monkeypatch.setattr(job, "play", lambda case: pytest.fail("it was started again"))
    again = ranklab.drill(4)
    assert again.requests == 0 and again._scenes == played[4]._scenes


def test_requests_are_counted_once(played):
    drill = Drill(Case(4), played[4]._scenes)
    assert (drill.requests, drill.answers, drill.solved) == (0, 0, False)
    first = drill.stacks(1)
    assert drill.stacks(1) == first and drill.requests == 1
    drill.log(1), drill.dump(1), drill.dump(2), drill.program()
    assert drill.requests == 5
    assert repr(drill) and drill.cards() and drill.requests == 5
    drill.answer(rank=0, line=None, cause="slow rank")
    assert (drill.requests, drill.answers, drill.solved) == (5, 1, False)


def test_what_is_told_reads_like_this(played):
    drill, case = Drill(Case(4), played[4]._scenes), Case(4)
    assert repr(drill).splitlines()[0] == "Drill 4: a job of 4 ranks makes no progress. The last line of each log:"
    assert len(repr(drill).splitlines()) == 5
    at = case.program.named["barrier"]
    assert drill.stacks(1) == (
        f"rank 1, MainThread, most recent call last\n  program.py, line {at}, in <module>\n    dist.barrier()\n"
        "  torch.distributed.distributed_c10d, in barrier"
    )
    assert drill.dump(1).splitlines()[:2] == [
        "rank 1, flight recorder, latest call last",
        "  group 0 (ranks 0, 1, 2, 3)",
    ]
    assert drill.dump(1).splitlines()[-1].split() == ["11", "barrier"]
    assert drill.dump(0).splitlines()[-1].split() == ["11", "all_reduce", "[1,", "3]", "float32"]
    assert repr(drill.log(0)) == str(drill.log(0)) and "step 3" not in drill.log(1)
    steady(drill.cards())


def test_cards_hold_all_and_the_solution_last(played):
    text = played[4].cards()
    assert text.count("--- drill 4 · ") == 1 + 3 * 4 + 1
    assert text.rpartition("---\n")[2].startswith("rank 1, line ")


def test_the_program_of_the_page_prints_cards(played, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cards.py", "4", "13"])
    runpy.run_path(str(Path(__file__).parents[2] / "book/breaking/scripts/cards.py"))
    assert capsys.readouterr().out == f"{played[4].cards()}\f\n{played[13].cards()}\f\n"


def ranks_of(owner):
    """The processes of a drill that this process has started: its warden, the ranks, and what they were forked from."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("RANKLAB_OWNER") == str(owner) and "ranklab.rank.drilled" in process.cmdline():
                found.append(process)
    return found


def test_nothing_is_left_running(played):
    assert eventually(lambda: not ranks_of(os.getpid()))


def test_a_notebook_that_is_killed_leaves_nothing(played):
    program = "import ranklab; ranklab.drill(13)"  # in which a rank is stopped
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        assert eventually(lambda: len(ranks_of(process.pid)) == 6)  # a warden, too
        process.kill()
    assert eventually(lambda: not ranks_of(process.pid))


def test_a_job_that_fails_to_start_is_told_and_ended(played, monkeypatch):
    monkeypatch.setattr(job, "PROGRAM", "other.py")
    with pytest.raises(RanklabError, match="The job of drill 4 ended without its fault: FileNotFoundError"):
        job.play(Case(4))


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(WorldError, match="seed is a whole number from 0"):
        ranklab.drill(seed)


@pytest.mark.parametrize("rank", [4, -1, "2", True, None])
def test_a_rank_that_is_not_there_costs_nothing(rank):
    drill = Drill(Case(4), ())
    with pytest.raises(WorldError, match="This job has ranks 0 to 3"):
        drill.stacks(rank)
    assert drill.requests == 0


def test_the_surface():
    assert len(ranklab.drill.causes) == 20 and ranklab.drill.par == 3
    assert repr(ranklab.drill) == "ranklab.drill(seed=…): a job of 4 ranks with one of 20 faults, for you to find"
