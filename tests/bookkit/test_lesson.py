"""What the clock of a lesson counts: which cells belong to the core, and what a learner does in them."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tests.benchmarks.lesson import SECONDS_A_LINE, SECONDS_A_QUESTION, WORDS_A_MINUTE, hold, lesson

TOP = "# A chapter\n\nTwo words."
CORE = "## First\n\n*Core · 7 minutes*\n\n**Which one?** (A) this (B) that[^source]\n\n[^source]: a file"
MORE = "### Deeper\n\n*More · 9 minutes*\n\nRead at home."
LAST = "## Last\n\n*Core · 2 minutes*\n\nIt ends."
FOLDED = {"tags": ["hide-input"]}
GPU = {"tags": ["needs-gpu"]}


@pytest.fixture
def chapter():
    cells = [
        new_markdown_cell(TOP),
        new_code_cell("one = 1"),
        new_markdown_cell(CORE),
        new_code_cell("%%px\n\ntwo = 2\nprint(two)"),
        new_code_cell("assert two == 2", metadata=FOLDED),
        new_code_cell("torch.cuda.synchronize()", metadata=GPU),
        new_markdown_cell(MORE),
        new_code_cell("raise KeyError('only at home')"),
        new_markdown_cell(LAST),
        new_code_cell("one + 1"),
    ]
    return new_notebook(cells=cells)


def test_the_core_is_what_is_left_without_more_and_without_a_gpu(chapter):
    core, belongs = lesson(chapter)
    sources = [cell.source for cell in core.cells if cell.cell_type == "code"]
    assert sources == ["one = 1", "%%px\n\ntwo = 2\nprint(two)", "assert two == 2", "one + 1"]
    assert [section.title for section in dict.fromkeys(belongs.values())] == ["(the top)", "First", "Last"]


def test_who_leaves_a_section_out_runs_the_box_at_its_end(chapter):
    box = [new_markdown_cell(":::{admonition} Start here if you came late\nRun it.\n:::"), new_code_cell("three = 3")]
    chapter.cells[8:8] = box
    core, belongs = lesson(chapter)
    assert "three = 3" in [cell.source for cell in core.cells] and "only at home" not in str(core.cells)
    assert sum(section.stated for section in dict.fromkeys(belongs.values())) == 9


def test_what_a_learner_reads_types_and_answers(chapter):
    first = {section.title: section for section in lesson(chapter)[1].values()}["First"]
    assert (first.stated, first.lines, first.questions) == (7, 3, 1)
    assert first.words == len(CORE[: CORE.index("[^source]:")].replace("[^source]", "").split())
    people = first.words / WORDS_A_MINUTE * 60 + 3 * SECONDS_A_LINE + SECONDS_A_QUESTION
    assert first.minutes == pytest.approx(people / 60)
    first.seconds = 60
    assert first.minutes == pytest.approx(people / 60 + 1)


def test_the_core_is_run_and_its_seconds_are_counted(chapter, monkeypatch, tmp_path):
    ran = []

    def execute(path, *, notebook, advance):
        advance(0)
        for done, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
            ran.append(cell.source)
            advance(done + 1)

    monkeypatch.setattr("tests.benchmarks.lesson.execute", execute)
    monkeypatch.setattr("tests.benchmarks.lesson.read", lambda path: chapter)
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("tests.benchmarks.lesson.time.monotonic", lambda: next(clock))
    held = hold(tmp_path / "chapter.ipynb")
    assert len(ran) == 4
    assert {part.title: part.seconds for part in held} == {"(the top)": 10, "First": 20, "Last": 10}
