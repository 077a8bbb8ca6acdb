import os
import sys

import psutil
import pytest

from bookkit.errors import ChapterError
from bookkit.execute import execute
from bookkit.notebook import code_cells


def texts(notebook):
    return ["".join(output.get("text", "") for output in cell.outputs) for _, _, cell in code_cells(notebook)]


def test_outputs_counts_and_progress(book):
    path = book.run("chapter", "x = 2", "print(x + 1)")
    seen = []
    notebook = execute(path, advance=lambda done, what="": seen.append((done, what)))
    assert texts(notebook) == ["", "3\n"]
    assert [cell.execution_count for _, _, cell in code_cells(notebook)] == [1, 2]
    assert seen == [(0, "x = 2"), (1, ""), (1, "print(x + 1)"), (2, "")]


def test_the_kernel_is_this_interpreter_in_the_chapters_folder_and_repeatable(book):
    path = book.run(
        "chapter",
        "import os, sys\nprint(sys.executable)",
        "print(os.getcwd())",
        "print(os.environ['IPP_NONINTERACTIVE'], os.environ['PYTHONHASHSEED'], os.environ['TZ'])",
    )
    assert texts(execute(path)) == [f"{sys.executable}\n", f"{path.parent}\n", "1 0 UTC\n"]


def test_a_failing_cell_is_shown_with_chapter_number_source_and_error(book):
    path = book.run("chapter", "x = 1", "y = x / 0  # here")
    with pytest.raises(ChapterError) as caught:
        execute(path, title="book/part/chapter.ipynb")
    shown = str(caught.value)
    assert shown.startswith("book/part/chapter.ipynb, cell [2]: failed")
    assert "y = x / 0  # here" in shown
    assert "ZeroDivisionError: division by zero" in shown


def test_an_expected_error_is_stored_and_the_chapter_goes_on(book):
    path = book.run("chapter", "1 / 0")
    notebook = execute(book.run("other", "1 / 0", tags=["raises-exception"]))
    assert notebook.cells[-1].outputs[0].ename == "ZeroDivisionError"
    with pytest.raises(ChapterError, match="failed"):
        execute(path)


def test_an_expected_error_that_does_not_come_is_an_error(book):
    path = book.run("chapter", "x = 1", tags=["raises-exception"])
    with pytest.raises(ChapterError, match=r"cell \[1\]: is tagged raises-exception but raised nothing"):
        execute(path)


def test_a_cell_that_takes_too_long(book, make):
    notebook = make.notebook(cells=[make.code("import time\ntime.sleep(60)")])
    notebook.metadata.mystnb = {"execution_timeout": 1}
    with pytest.raises(ChapterError, match=r"cell \[1\]: did not finish within 1 s"):
        execute(book.add("slow", notebook))


def test_a_cell_that_kills_the_kernel(book):
    path = book.run("chapter", "import os\nos._exit(3)", tags=["raises-exception"])
    with pytest.raises(ChapterError, match="killed the notebook's kernel"):
        execute(path)


def test_atexit_of_the_kernel_runs(book, tmp_path):
    witness = tmp_path / "witness"
    execute(book.run("chapter", f"import atexit, pathlib\natexit.register(pathlib.Path({str(witness)!r}).touch)"))
    assert witness.exists()


def test_a_process_that_stays_behind_is_named_and_ended(book):
    # In a session of its own, as ranks are: its parent is gone when we look for it.
    start = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    path = book.run("chapter", f"import subprocess, sys\nsubprocess.Popen({start}, start_new_session=True)")
    with pytest.raises(ChapterError, match=r"1 processes? w\w+ still running") as caught:
        execute(path)
    assert "time.sleep(600)" in str(caught.value)
    commands = []
    for process in psutil.process_iter():
        if process.pid != os.getpid():
            try:
                commands.append(process.cmdline())
            except psutil.Error:
                continue
    assert not any("import time; time.sleep(600)" in command for command in commands)
