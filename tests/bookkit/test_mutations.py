"""What is changed in a chapter's cells, and who notices."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookkit import needs
from bookkit.__main__ import main
from bookkit.execute import execute
from bookkit.mutations import changes, chosen, mutations
from bookkit.normalise import normalise
from bookkit.notebook import write

CELL = "%%px\nx = 3 - 1\nif x > 1:\n    first(x)\n    second(\n        x,\n    )\nprint(x)"


def found(source):
    return dict(changes(source))


def test_each_kind_of_change_keeps_the_lines_of_the_cell():
    told = found(CELL)
    assert set(told) >= {
        "3 - 1 swapped", "x > 1 reversed", "first(x) left out", "second( x, ) left out", "3 became 4",
        "second( x, ) before first(x)",
    }  # fmt: skip
    assert told["3 - 1 swapped"] == CELL.replace("3 - 1", "(1) - (3)")
    assert told["x > 1 reversed"] == CELL.replace("x > 1", "(x <= 1)")
    assert all(source.startswith("%%px\n") and source.count("\n") == CELL.count("\n") for source in told.values())


@pytest.mark.parametrize(
    ("source", "what", "changed"),
    [
        ("total += x", "total += x subtracted", "total -= x"),
        ("f(keep=True)", "True turned", "f(keep=False)"),
        ("wait()", "wait() left out", "pass"),
        ("y = '→'; z = a / b", "a / b swapped", "y = '→'; z = (b) / (a)"),
    ],
)
def test_what_is_changed(source, what, changed):
    assert found(source)[what] == changed


def test_what_only_prints_stays_and_so_does_what_is_no_python():
    assert not found("print(x)") and not found("!ls") and not found("%%bash\nls -1 | wc")


def a_chapter(*cells):
    return new_notebook(cells=list(cells))


def test_exercises_hidden_cells_and_the_start_are_left_alone():
    hidden = new_code_cell("assert 1 < 2")
    hidden.metadata.tags = ["hide-input"]
    notebook = a_chapter(
        new_code_cell("world = ranklab.start(4)"),
        hidden,
        new_markdown_cell("```{exercise-start}\n```"),
        new_code_cell("x = 1"),
        new_markdown_cell("```{exercise-end}\n```"),
        new_code_cell("y = 1"),
    )
    assert [mutation.index for mutation in mutations(notebook)] == [5]


def test_a_cell_that_this_machine_does_not_run_is_left_alone(monkeypatch):
    card = new_code_cell("x = 1")
    card.metadata.tags = [needs.NEEDS_GPU]
    for lacking, expected in ("shows no NVIDIA GPU", [1]), ("", [0, 1]):
        monkeypatch.setitem(needs.NEEDS, needs.NEEDS_GPU, needs.Need(lambda lacking=lacking: lacking, kept=True))
        assert [mutation.index for mutation in mutations(a_chapter(card, new_code_cell("y = 1")))] == expected


def test_changes_are_spread_over_the_cells_and_the_same_every_time():
    notebook = a_chapter(*(new_code_cell(f"x = {number} - 1\ny = x > {number}") for number in range(3)))
    taken = chosen(notebook, 3)
    assert [mutation.index for mutation in taken] == [0, 1, 2]
    assert taken == chosen(notebook, 3) != chosen(notebook, 3, seed=1)
    assert len(chosen(notebook, 100)) == len(mutations(notebook))


def test_a_change_is_noticed_by_an_error_or_by_an_output_and_else_nobody_does(book, capsys):
    path = book.run("noticed", "x = 5 - 1", "assert x == 4")
    assert main(["--root", str(book.root), "mutate", "--count", "1", str(path)]) == 0
    assert "1 of 1 changes were noticed" in capsys.readouterr().out
    shown = "from IPython.display import display\ndisplay({'text/plain': 'a', 'text/html': 'b'}, raw=True)"
    path = book.run("unnoticed", "x = 5 - 1", shown)
    write(path, normalise(execute(path)))
    assert main(["--root", str(book.root), "mutate", "--count", "1", str(path)]) == 1
    told = capsys.readouterr().out
    assert "nobody" in told and "0 of 1 changes were noticed" in told
