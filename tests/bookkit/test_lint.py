import subprocess

import pytest

from bookkit.chapter import Chapter
from bookkit.errors import BookError
from bookkit.lint import formatted, lint_chapter, lint_code
from bookkit.notebook import write


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
    result = formatted(notebook, tmp_path, "chapter.ipynb")
    assert result.cells[1].source == "%%px --ranks 0,2\nimport os\nimport sys\n\nprint(sys, os)"
    assert result.cells[2].source == "%load_ext ranklab\nf(1);"
    assert result.cells[1].outputs == notebook.cells[1].outputs
    assert formatted(result, tmp_path, "chapter.ipynb") == result


def test_a_mend_of_the_format_can_be_typed_in_any_shell(tmp_path, complaints):
    assert complaints("f( 1 )  # noqa: F821")[0].fix == "run `make record CH=chapter.ipynb`"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text('"""A."""\nprint( 1 )\n')
    (finding,) = lint_code(tmp_path)
    command = finding.fix.removeprefix("run `").removesuffix("`")
    subprocess.run(command.split(), cwd=tmp_path, env={}, check=True)
    assert lint_code(tmp_path) == []


def test_a_syntax_error_in_a_chapter_is_a_finding(complaints):
    (finding,) = complaints("%%px\nx = (1 +")
    assert (finding.place, finding.rule) == ("chapter.ipynb, cell [1]", "invalid-syntax")
    assert "line 2" in finding.fix


def test_a_syntax_error_in_code_is_a_finding_and_leaves_no_cache(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = (1\n")
    (tmp_path / "src" / "b.py").write_text("print(undefined)\n")
    found = {finding.rule for finding in lint_code(tmp_path)}
    assert found == {"invalid-syntax", "F821"}
    assert [path.name for path in tmp_path.iterdir()] == ["src"]


def test_formatting_what_cannot_be_parsed_names_chapter_and_cell(tmp_path, make):
    notebook = make.clean()
    notebook.cells[2].source = "y =="
    with pytest.raises(BookError, match=r"book/chapter.ipynb, cell \[2\]: Expected an expression"):
        formatted(notebook, tmp_path, "book/chapter.ipynb")


def test_what_ruff_says_when_it_fails_is_shown(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "ruff.toml").write_text("no-such-setting = 1")
    with pytest.raises(BookError, match="no-such-setting"):
        lint_code(tmp_path)
