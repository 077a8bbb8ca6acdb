"""What a drill says of an answer: a sentence of its own for each way to be wrong. No process is started."""

import pytest
from support import steady

from ranklab.drills.cards import cards
from ranklab.drills.catalogue import CAUSES, FAULTS, Case
from ranklab.drills.scene import Scene
from ranklab.drills.verdict import Answer, judge

SKIPPED = next(seed for seed in range(20) if Case(seed).fault.cause == "skipped collective")
KILLED = next(seed for seed in range(20) if Case(seed).fault.cause == "killed from outside")
TAG = next(seed for seed in range(20) if Case(seed).fault.cause == "wrong tag")
CROSSED = next(seed for seed in range(20) if Case(seed).fault.cause == "groups crossed")
DTYPE = next(seed for seed in range(20) if Case(seed).fault.cause == "another dtype")
SHAPE = next(seed for seed in range(20) if Case(seed).fault.cause == "another shape")
SLOW = next(seed for seed in range(20) if Case(seed).fault.cause == "slow rank")
EXCHANGES = [seed for seed in range(60) if Case(seed).fault.cause in ("wrong peer", "wrong tag")]


def at(rank, *lines):
    frames = [{"line": line, "name": "<module>", "text": ""} for line in lines]
    told = {"stacks": [{"thread": "MainThread", "frames": frames}], "calls": {"entries": [], "groups": {}}}
    return Scene(rank, "step 1: loss 1.0\n", None, told)


def ended(rank, code):
    return Scene(rank, "", code, {})


def scenes(case):
    """What each rank left, the guilty one in the line where it stands, the others in the all_reduce."""
    named = case.program.named
    told = [at(rank, named["average"], named["sum"]) for rank in range(4)]
    told[case.at.guilty] = at(case.at.guilty, (*case.program.stands, named["barrier"])[0])
    return told


def exchange(case):
    """What each rank left where a pair does not meet: each stands in the first line of its branch."""
    told = scenes(case)
    for rank in case.at.guilty, case.at.guilty ^ 1:
        told[rank] = at(rank, case.program.stands[2 * (rank % 2)])
    return told


def say(seed, rank, line, cause, told=None, requests=3):
    case = Case(seed)
    return steady(str(judge(case, told or scenes(case), Answer(rank, line, cause), requests)))


CASE = Case(SKIPPED)
RANK, VICTIM, LINES = CASE.at.guilty, (CASE.at.guilty + 1) % 4, CASE.program.guilty
STANDS, SUM, AVERAGE = CASE.program.named["barrier"], CASE.program.named["sum"], CASE.program.named["average"]


def skipped(rank=RANK, line=LINES[0], cause="skipped collective", **more):
    return say(SKIPPED, rank, line, cause, **more)


@pytest.mark.parametrize("line", LINES)
def test_right(line):
    also = "" if line == LINES[0] else f" Line {line} is right as well."
    assert skipped(line=line) == f"Correct. {CASE.why}{also} You made 3 requests: par."


@pytest.mark.parametrize(
    "requests, words",
    [(1, "1 request: fewer than par."), (2, "2 requests: fewer than par."), (7, "7 requests: par is 3.")],
)
def test_par(requests, words):
    assert skipped(requests=requests).endswith(f"You made {words}")


def test_a_victim():
    assert skipped(rank=VICTIM, cause="slow rank") == (
        f"Not yet. Rank {VICTIM} is a victim: it waits in line {SUM}, as 2 other ranks do. Look for the rank that is "
        "not there."
    )


def test_a_victim_with_the_right_cause():
    assert skipped(rank=VICTIM) == (
        f"Not yet. Rank {VICTIM} is a victim: it waits in line {SUM}, as 2 other ranks do. Look for the rank that is "
        "not there. The cause that you name is right."
    )


def test_a_victim_in_a_line_where_it_is_not():
    assert skipped(rank=VICTIM, line=3, cause="slow rank") == (
        f"Not yet. Rank {VICTIM} is a victim: it waits in line {SUM}, as 2 other ranks do. Look for the rank that is "
        "not there. Line 3 is not in its stack."
    )


def test_a_victim_that_waits_alone():
    told = scenes(CASE)
    told[VICTIM] = at(VICTIM, AVERAGE)
    assert skipped(rank=VICTIM, cause="slow rank", told=told) == (
        f"Not yet. Rank {VICTIM} waits for somebody else. Look for the rank that it waits for."
    )


@pytest.mark.parametrize("seed", [TAG, CROSSED])
def test_a_partner_in_the_line_where_the_guilty_rank_stands(seed):
    case = Case(seed)
    partner, line = case.at.guilty ^ 1, case.program.stands[-1]
    told = scenes(case)
    told[partner] = at(partner, line)
    assert say(seed, partner, line, "slow rank", told) == (
        f"Not yet. Rank {partner} stands in that line as it should, and waits for a partner. Ask what its partner "
        "wanted there."
    )


@pytest.mark.parametrize("seed", [CROSSED, 31])
def test_the_other_pair_is_not_sent_to_its_partner_who_is_right_too(seed):
    case = Case(seed)
    assert case.fault.cause == "groups crossed"
    line = case.program.stands[0]
    told = [at(rank, line) for rank in range(4)]
    for rank in range(4):
        said = say(seed, rank, line, "slow rank", told)
        if rank == case.at.guilty ^ 1:
            assert "Ask what its partner wanted there." in said
        elif rank != case.at.guilty:
            assert said == (f"Not yet. Rank {rank} waits for somebody else. Look for the rank that it waits for.")


def test_a_victim_that_ended_with_an_error():
    told = [ended(rank, -9 if rank == Case(KILLED).at.guilty else 1) for rank in range(4)]
    victim = (Case(KILLED).at.guilty + 1) % 4
    assert say(KILLED, victim, None, "exception swallowed", told) == (
        f"Not yet. Rank {victim} is a victim: it ended with an error because another rank was lost to it. Look for "
        "what came before that."
    )


def test_a_victim_that_the_library_ended():
    case = Case(DTYPE)
    victim = (case.at.guilty + 3) % 4
    told = [ended(rank, -6 if rank == victim else 1) for rank in range(4)]
    assert say(DTYPE, victim, case.program.guilty[0], "killed from outside", told) == (
        f"Not yet. Rank {victim} was ended by an error inside the library, when it met what another rank sent."
    )


def test_a_cause_of_the_same_family():
    assert skipped(cause="exception swallowed") == (
        f"Not yet. Rank {RANK} is right and so is the line, and the cause is close, but another one. A swallowed "
        "exception needs an except in the program that goes on as if nothing had happened."
    )


def test_a_cause_of_the_same_family_and_another_line():
    assert skipped(cause="exception swallowed", line=STANDS) == (
        f"Not yet. Rank {RANK} is right, and the cause is close, but another one. A swallowed exception needs an "
        "except in the program that goes on as if nothing had happened."
    )


def test_the_sign_of_a_skipped_collective_does_not_fit_a_slow_rank():
    case = Case(SLOW)
    assert say(SLOW, case.at.guilty, case.program.stands[0], "skipped collective") == (
        f"Not yet. Rank {case.at.guilty} is right and so is the line, but the cause is of another kind. Where a rank "
        "skipped a collective, an if in the program leads past it: a step is missing in the middle of the rank's log, "
        "and its barrier meets an all_reduce of the others."
    )


def test_a_cause_of_another_kind():
    assert skipped(cause="lock taken twice") == (
        f"Not yet. Rank {RANK} is right and so is the line, but the cause is of another kind. A lock taken twice shows "
        "a stack that ends in a with outside of torch, above another with of the same lock."
    )


def test_a_cause_from_outside():
    assert skipped(cause="killed from outside") == (
        f"Not yet. Rank {RANK} is right and so is the line, but nothing came from outside. A rank that was killed has "
        "ended by a signal, and its log ends without a traceback."
    )


def test_a_cause_in_the_program_where_it_came_from_outside():
    told = [ended(rank, -9 if rank == Case(KILLED).at.guilty else 1) for rank in range(4)]
    said = say(KILLED, Case(KILLED).at.guilty, None, "loader ends early", told)
    assert said == (
        f"Not yet. Rank {Case(KILLED).at.guilty} is right, but no part of the program explains its end. A loader that "
        "ends early has fewer rows than those of the other ranks, and so gives fewer steps."
    )


def test_the_line_where_the_guilty_rank_stands():
    assert skipped(line=STANDS) == (
        f"Not yet. Rank and cause are right. Line {STANDS} is where rank {RANK} stands now; name the line that sent it "
        "there."
    )


def test_a_line_further_up_in_the_stack_of_the_guilty_rank():
    told = scenes(CASE)
    told[RANK] = at(RANK, AVERAGE, 3)
    assert skipped(line=AVERAGE, told=told).endswith("stands now; name the line that sent it there.")


@pytest.mark.parametrize("seed", EXCHANGES)
def test_of_an_exchange_only_the_line_where_the_guilty_rank_hangs_is_right(seed):
    case = Case(seed)
    rank, told = case.at.guilty, exchange(case)
    first, hangs = case.program.guilty[0], told[rank].line
    right = f"Correct. {case.why}"
    assert say(seed, rank, first, case.fault.cause, told) == f"{right} You made 3 requests: par."
    assert say(seed, rank, hangs, case.fault.cause, told) == (
        f"{right} Line {hangs} is right as well. You made 3 requests: par."
    )
    for line in set(case.program.stands) - {hangs}:
        assert say(seed, rank, line, case.fault.cause, told) == (
            f"Not yet. Rank and cause are right, but rank {rank} did not reach line {line} in its last step."
        )
        assert "and so is the line" not in say(seed, rank, line, "slow rank", told)
    assert f"rank {rank}, line {first} or {hangs}, cause: {case.fault.cause}\n" in cards(case, told)


def test_another_rank_is_told_that_it_is_not_in_the_other_branch():
    seed = EXCHANGES[0]
    case = Case(seed)
    told = exchange(case)
    partner, line = case.at.guilty ^ 1, case.program.stands[1]
    assert f" Line {line} is not in its stack." in say(seed, partner, line, "slow rank", told)


@pytest.mark.parametrize("seed", [DTYPE, SHAPE, 39])
def test_the_line_where_a_rank_that_has_ended_was_struck(seed):
    case = Case(seed)
    line = case.program.stands[0]
    assert say(seed, case.at.guilty, line, case.fault.cause, [ended(rank, 1) for rank in range(4)]) == (
        f"Not yet. Rank and cause are right. Line {line} is where the fault struck; name the line that led to it."
    )


def test_the_line_where_the_others_wait():
    assert skipped(line=SUM) == (
        f"Not yet. Rank and cause are right. Line {SUM} is where the others wait, and they are right to be there."
    )


def test_a_line_that_is_close():
    assert skipped(line=LINES[0] - 1) == (
        f"Not yet. Rank and cause are right, and line {LINES[0] - 1} is close: the line to blame is at most 2 lines "
        "away."
    )


def test_a_line_that_is_far():
    assert skipped(line=3) == "Not yet. Rank and cause are right, but line 3 does the same on every rank."


def test_no_line_where_one_is_to_blame():
    assert skipped(line=None) == (
        "Not yet. Rank and cause are right, but a line of the program lets it happen. Name it."
    )


def test_a_line_where_none_is_to_blame():
    assert say(KILLED, Case(KILLED).at.guilty, 8, "killed from outside") == (
        "Not yet. Rank and cause are right, but line 8 is not to blame: no line of the program is. Say line=None."
    )


def test_no_line_is_right_where_none_is_to_blame():
    assert say(KILLED, Case(KILLED).at.guilty, None, "killed from outside").startswith("Correct. After step ")


@pytest.mark.parametrize("rank", [4, -1, "1", 1.0, True, None])
def test_a_rank_that_does_not_exist(rank):
    assert skipped(rank=rank) == f"Not yet. rank is a whole number from 0 to 3, not {rank!r}."


def test_a_cause_that_is_misspelt():
    assert skipped(cause="skiped colective") == (
        "Not yet. 'skiped colective' is no cause of the list in ranklab.drill.causes. Did you mean \"skipped "
        'collective"?'
    )


@pytest.mark.parametrize("cause", ["cosmic rays", 7, None])
def test_a_cause_that_nobody_knows(cause):
    assert skipped(cause=cause) == f"Not yet. {cause!r} is no cause of the list in ranklab.drill.causes."


@pytest.mark.parametrize("line", [0, -3, 1000, "26", 26.0, True])
def test_a_line_that_does_not_exist(line):
    last = len(CASE.program.lines)
    assert skipped(line=line) == (
        f"Not yet. line is a line of the program, 1 to {last}, or None where no line is wrong; it is not {line!r}."
    )


def test_an_empty_line():
    assert skipped(line=2) == "Not yet. Line 2 of the program is empty."


@pytest.mark.parametrize("seed", range(20))
def test_no_wrong_answer_is_taken_for_right_and_no_sentence_tells_the_solution(seed):
    case = Case(seed)
    line = case.program.guilty[0] if case.program.guilty else None
    for cause in CAUSES:
        for rank in range(4):
            said = say(seed, rank, line, cause)
            right = rank == case.at.guilty and cause == case.fault.cause
            assert said.startswith("Correct. ") == right
            assert right or case.why not in said


def test_every_cause_has_its_own_sign():
    assert len({fault.sign for fault in FAULTS}) == len(FAULTS) == len({fault.why for fault in FAULTS})
