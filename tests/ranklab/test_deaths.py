"""What is said of a rank whose process has ended, from plain data."""

import pytest

from ranklab.hangs import deaths
from ranklab.outcome import RankOutcome

TOO_MUCH = "what():  [enforce fail at pair.cc:446] op.preamble.length <= op.nbytes. 16 vs 4"


@pytest.mark.parametrize(
    ("cell", "line", "place"),
    [
        ("x = 1\nos._exit(9)", 2, "in line 2:  os._exit(9)"),
        ("if rank == 0: os._exit(9)", 1, "in line 1:  if rank == 0: os._exit(9)"),
        ("x = 1\nprint(x); os._exit(9)", 2, "in line 2:  print(x); os._exit(9)"),
        ("for step in range(9):\n    os._exit(9)", 1, "in the statement that begins in line 1:  for step in range(9):"),
        ("os._exit(\n    9\n)", 1, "in the statement that begins in line 1:  os._exit("),
        ("@wrap\ndef f(): ...", 1, "in the statement that begins in line 1:  @wrap"),
        ("def main():\n    os._exit(9)\nmain()", 3, "in line 3, or in what it calls:  main()"),
        ("trainer.fit()", 1, "in line 1, or in what it calls:  trainer.fit()"),
        ("dist.all_reduce(x)", 1, "in line 1:  dist.all_reduce(x)"),
        ("%time main()", 1, "in the statement that begins in line 1:  %time main()"),
        ("await later()", 1, "in line 1, or in what it calls:  await later()"),
    ],
)
def test_the_place_of_a_death_is_told_no_more_exactly_than_it_is_known(cell, line, place):
    assert deaths.how(RankOutcome(1, state="died", exit_code=9, last_line=line), cell) == (
        f"ended with exit status 9 {place}"
    )


def test_a_cell_that_python_warns_of_is_read_without_a_word(recwarn):
    assert deaths.how(RankOutcome(1, state="died", exit_code=9, last_line=1), 'x = "\\d"').endswith(
        'in line 1:  x = "\\d"'
    )
    assert not recwarn.list


@pytest.mark.parametrize(
    ("others", "apart"),
    [
        ([], False),
        ([["line 13:  dist.all_reduce(x)", "in torch.distributed.all_reduce", "RuntimeError: closed"]], False),
        ([["line 12:  loss.backward()", "in torch._tensor.Tensor.backward", "RuntimeError: closed"]], True),
        ([[], ["line 13:  f()", "line 2 in f:  dist.all_reduce(x)"]], True),
        ([["line 1 in f (an earlier cell):  dist.all_reduce(x)"]], True),
    ],
)
def test_ranks_in_different_lines_may_be_in_different_calls(others, apart):
    dead = RankOutcome(0, state="died", last_words=TOO_MUCH, last_line=13)
    rest = [RankOutcome(rank, state="raised", traceback=lines) for rank, lines in enumerate(others, 1)]
    cause, fix = deaths.why(dead, [dead, *rest])
    assert cause.startswith("another rank sent it 16 bytes where it expected 4")
    assert ("one of them has left out a collective" in cause) == apart
    assert fix.startswith("compare the lines: all ranks must call the same" if apart else "make the tensors of that")
