import pytest

from bookkit.lint import formatted, lint_chapter, lint_code
from bookkit.notebook import write
from bookkit.rules import Chapter


@pytest.fixture
def complaints(tmp_path, make):
    """What ruff says of a chapter whose first code cell has this source."""

    def lint(source):
        notebook = make.clean()
        notebook.cells[1].source = source
        path = tmp_path / "chapter.ipynb"
        write(path, notebook)
        return lint_chapter(Chapter(path, "chapter.ipynb"), tmp_path)

    return lint


def test_a_clean_chapter(complaints):
    assert complaints('%%px --ranks 0,2\nprint("rank 0")') == []


def test_cells_of_the_ranks_are_linted_and_named(complaints):
    (finding,) = complaints("%%px --timeout 10\nprint(undefined)")
    assert finding.place == "chapter.ipynb, cell [1]"
    assert finding.rule == "F821"


def test_cells_of_the_ranks_have_ruffs_format(complaints):
    (finding,) = complaints("%%px\nprint( 1 )")
    assert (finding.place, finding.rule) == ("chapter.ipynb, cell [1]", "format")


def test_code_is_linted_and_its_format_checked(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text('"""A."""\nprint( undefined )\n')
    rules = {finding.rule for finding in lint_code(tmp_path)}
    assert rules == {"F821", "format"}
    assert {finding.place for finding in lint_code(tmp_path)} == {"src/a.py:2"}


def test_formatting_a_chapter_keeps_its_magics_and_outputs(tmp_path, make):
    notebook = make.clean()
    notebook.cells[1].source = "%%px --ranks 0,2\nimport sys\nimport os\nprint( sys,os )"
    notebook.cells[2].source = "%load_ext ranklab\nf(  1 );"
    result = formatted(notebook, tmp_path)
    assert result.cells[1].source == "%%px --ranks 0,2\nimport os\nimport sys\n\nprint(sys, os)"
    assert result.cells[2].source == "%load_ext ranklab\nf(1);"
    assert result.cells[1].outputs == notebook.cells[1].outputs
    assert formatted(result, tmp_path) == result
