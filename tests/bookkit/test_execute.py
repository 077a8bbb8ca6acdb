import os
import sys
import uuid

import psutil
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError

from bookkit import needs
from bookkit.errors import ChapterError
from bookkit.execute import execute
from bookkit.notebook import code_cells, read


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


def test_the_kernel_is_reached_through_files(book):
    """Another program can take a port before the kernel has it; kernel and chapter then waited for ever."""
    source = "from ipykernel.connect import get_connection_info\nprint(get_connection_info(unpack=True)['transport'])"
    assert texts(execute(book.run("chapter", source))) == ["ipc\n"]


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


@pytest.mark.parametrize("source", ["1 / 0", "1"])
@pytest.mark.parametrize("shows", [[], ["raises-on-gpu"]])
def test_on_a_gpu_an_error_is_expected_where_the_cell_says_so(book, monkeypatch, source, shows):
    monkeypatch.setitem(needs.NEEDS, "needs-gpu", needs.Need(lambda: "", kept=True))
    path = book.run("chapter", source, tags=["needs-gpu", "raises-exception", *shows])
    if bool(shows) == (source == "1 / 0"):
        assert execute(path).cells[-1].execution_count == 1
    else:
        with pytest.raises(ChapterError, match="raised nothing" if shows else "failed") as caught:
            execute(path)
        assert shows or "ZeroDivisionError: division by zero" in str(caught.value)


def test_a_cell_that_takes_too_long(book):
    path = book.run("slow", "import time\ntime.sleep(60)")
    with pytest.raises(ChapterError, match=r"cell \[1\]: did not finish within 1 s"):
        execute(path, seconds=1)


def test_output_that_is_late_is_not_called_a_slow_cell(book, monkeypatch):
    async def late(client, cell, index, **_):
        raise CellTimeoutError.error_from_timeout_and_cell("Timeout waiting for IOPub output", 30, cell)

    monkeypatch.setattr(NotebookClient, "async_execute_cell", late)
    with pytest.raises(ChapterError, match=r"cell \[1\]: finished, but its output had not arrived 30 s later"):
        execute(book.run("chapter", "x = 1"))


def test_a_notebook_in_place_of_what_the_file_holds(book):
    path = book.run("chapter", "print(1)")
    notebook = read(path)
    notebook.cells[1].source = "print(2)"
    assert texts(execute(path, notebook=notebook)) == ["2\n"]


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
    sleep = f"import time; time.sleep(600)  # {uuid.uuid4()}"
    start = f"[sys.executable, '-c', {sleep!r}]"
    path = book.run("chapter", f"import subprocess, sys\nsubprocess.Popen({start}, start_new_session=True)")
    with pytest.raises(ChapterError, match=r"after its end it had left behind 1 process\.") as caught:
        execute(path)
    assert sleep in str(caught.value)
    commands = []
    for process in psutil.process_iter():
        if process.pid != os.getpid():
            try:
                commands.append(process.cmdline())
            except psutil.Error:
                continue
    assert not any(sleep in command for command in commands)
