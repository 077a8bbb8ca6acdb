"""Options and magics of ipyparallel: each works as its help says, or says in one sentence what to do instead."""

import re

import pytest

from ranklab import live
from ranklab.errors import RankTimeout, WorldError


@pytest.fixture(autouse=True)
def rank_variable(notebook):
    notebook.px("import os; rank = int(os.environ['RANK'])")
    yield
    notebook.run("%pxconfig --ranks all --timeout 60 --block --no-verbose --progress-after 1")


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ("--stream", "leave out --stream"),
        ("--group-outputs engine", "leave out --group-outputs, -e and -r"),
        ("--group-outputs order", "leave out --group-outputs, -e and -r"),
        ("-e", "leave out --group-outputs, -e and -r"),
        ("-r", "leave out --group-outputs, -e and -r"),
        ("--signal-on-interrupt SIGKILL", "--signal-on-interrupt takes nothing else"),
        ("--signal-on-interrupt 0", "--signal-on-interrupt takes nothing else"),
    ],
)
def test_what_a_panel_has_no_use_for_is_refused_and_nothing_runs(notebook, option, part):
    notebook.px("touched = False")
    shown = notebook.px("touched = True", option)
    assert isinstance(shown.error, WorldError) and part in str(shown.error) and "\n" not in str(shown.error)
    assert notebook.names["world"].pull("touched") == [False] * 4


@pytest.mark.parametrize("option", ["--no-stream", "--group-outputs type", "--signal-on-interrupt SIGINT", "--block"])
def test_what_a_cell_does_anyway_may_be_asked_for(notebook, option):
    assert notebook.px("print('here')", option).text == "ranks 0–3   here"


def test_verbose_says_where_the_cell_runs(notebook):
    shown = notebook.px("print('here')", "--verbose --ranks 0,2 --timeout 30")
    assert shown.text == "On ranks 0, 2, deadline 30 s.\n\nranks 0, 2   here"


@pytest.mark.parametrize(("option", "shows"), [("--progress-after 0", True), ("--progress-after -1", False)])
def test_progress_after_says_when_the_display_begins(notebook, monkeypatch, option, shows):
    monkeypatch.setattr(live, "_audience", lambda: "notebook")
    seen = []
    monkeypatch.setattr(live.Live, "show", lambda self, bundle: seen.append(bundle))
    monkeypatch.setattr(live.Live, "finish", lambda *_: None)
    assert notebook.px("import time; time.sleep(1.5)", option).error is None
    assert bool(seen) is shows


def test_pxconfig_chooses_ranks_until_it_is_told_others(notebook):
    assert notebook.run("%pxconfig --targets 0").error is None
    assert notebook.px("print(rank)").text == "rank 0   0"
    assert notebook.run("%px print(rank)").text == "rank 0   0"
    assert notebook.px("print(rank)", "--ranks 2").text == "rank 2   2"
    assert notebook.run("%pxconfig --ranks all").error is None
    assert notebook.px("print('all')").text == "ranks 0–3   all"


def test_pxconfig_sets_the_deadline(notebook):
    notebook.run("%pxconfig --timeout 1")
    shown = notebook.px("while rank == 0:\n    pass")
    assert isinstance(shown.error, RankTimeout) and str(shown.error).startswith("After 1 s: ")


def test_pxconfig_may_leave_cells_to_run_by_themselves(notebook):
    notebook.run("%pxconfig --noblock")
    assert "AsyncResult" in notebook.px("print('later')").text
    notebook.run("%pxconfig --block")
    assert notebook.run("%pxresult").text == "ranks 0–3   later"


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("%pxconfig --ranks 7", "There is no rank 7"),
        ("%pxconfig --stream", "leave out --stream"),
        ("%pxconfig --timeout -1", "--timeout takes seconds"),
        ("%pxresult -e", "leave out --group-outputs"),
        ("%autopx", "begin each cell that is for the ranks with %%px"),
    ],
)
def test_a_magic_that_cannot_do_it_says_so_and_changes_nothing(notebook, line, part):
    shown = notebook.run(line)
    assert isinstance(shown.error, WorldError) and part in str(shown.error) and "\n" not in str(shown.error)
    assert notebook.px("print('all')").text == "ranks 0–3   all"


def test_pxresult_waits_for_a_cell_and_shows_its_panel(notebook):
    notebook.px("import time; time.sleep(0.5); print('rank says', rank)", "--noblock")
    shown = notebook.run("%pxresult")
    assert shown.text.splitlines() == [f"rank {rank}   rank says {rank}" for rank in range(4)]
    assert notebook.run("%pxresult").text == shown.text


def test_pxresult_shows_an_error_as_the_cell_would(notebook):
    notebook.px("if rank == 1: raise ValueError('no')", "--noblock")
    shown = notebook.run("%pxresult")
    assert str(shown.error) == "rank 1 raised ValueError: no"
    assert re.search(r"rank 1   line 1:  if rank == 1: raise ValueError\('no'\)", shown.text)


def test_pxresult_frees_ranks_that_hang(notebook):
    notebook.px("while True:\n    pass", "--noblock")
    notebook.run("%pxconfig --timeout 1")
    assert "still at work" in str(notebook.run("%pxresult").error)
    assert notebook.px("print('here')").text == "ranks 0–3   here"


def test_pxresult_keeps_ipyparallels_result_under_a_name(notebook):
    notebook.px("rank + 1", "--noblock")
    assert notebook.run("%pxresult --out result").error is None
    result = notebook.names["result"]
    assert result.wait_for_output(300)  # get() waits for the values alone
    assert [reply.execute_result["data"]["text/plain"] for reply in result.get()] == list("1234")


def test_pxresult_before_any_cell_says_so(notebook):
    notebook.run("world.restart()")
    shown = notebook.run("%pxresult")
    assert isinstance(shown.error, WorldError) and "No %%px cell has run on these ranks" in str(shown.error)
