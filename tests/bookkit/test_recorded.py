"""Cells that need a GPU: recorded where there is one, kept elsewhere, and what the page and the check say of them."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from nbformat.v4 import new_code_cell, new_output

from bookkit import needs, recorded
from bookkit.__main__ import main
from bookkit.chapter import Chapter
from bookkit.check import report
from bookkit.normalise import normalise
from bookkit.notebook import read, to_bytes, write
from bookkit.record import record
from bookkit.recorded import caption, digest, shown, waiting
from bookkit.rules import examine
from ranklab.system.seen import Seen

GPU = ["needs-gpu", "raises-exception"]
CARD = "NVIDIA H100 80GB HBM3"
NOTE = {"torch": "2.13.0+cu130", "cuda": "13.0", "nccl": "2.28.9", "gpu": CARD}


@pytest.fixture(autouse=True)
def gpus(monkeypatch):
    """Say which GPUs this machine has, and what torch thinks of them; none at first."""

    def forget():
        needs.card.cache_clear()
        needs.no_gpu.cache_clear()

    def play(*names, **other):
        forget()
        looked = Seen("2.13.0+cu130", "13.0", "13.0", "2.28.9", names=names, **other)
        monkeypatch.setattr(needs, "visible_gpus", lambda: len(names))
        monkeypatch.setattr(needs.seen, "look", lambda: looked)

    play()
    yield play
    forget()


def stored(source, printed="from a GPU\n", *, note=None):
    """A cell that was recorded on a GPU."""
    cell = new_code_cell(source, execution_count=2, metadata={"tags": GPU})
    cell.outputs = [new_output("stream", text=printed)]
    cell.metadata["recorded"] = (note or NOTE) | {"source": digest(source)}
    return cell


def chapter(book, make, name, *cells, others=('print("first")', 'print("last")')):
    first, last = map(new_code_cell, others)
    return book.add(name, normalise(make.notebook(cells=[make.text("# A chapter"), first, *cells, last])))


def printed(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


def test_on_a_machine_without_a_gpu_record_keeps_what_is_stored_to_the_letter(book, make, capsys):
    path = chapter(book, make, "chapter", stored('raise SystemExit("this cell must not run")'))
    before = read(path).cells[2]
    assert main(["--root", str(book.root), "record"]) == 1  # it has no figure and no exercise
    after = read(path)
    assert after.cells[2] == before and printed(before) == "from a GPU\n"
    assert [printed(cell) for cell in after.cells[1::2]] == ["first\n", "last\n"]
    told = capsys.readouterr().out.partition("cells that need one keep what is stored, in book/part/chapter.ipynb\n")
    assert told[1] and told[0].endswith("This machine shows no NVIDIA GPU: ")


def test_the_cells_below_a_kept_one_count_as_if_it_had_run(book, make, gpus):
    path = chapter(book, make, "chapter", stored("y = 1"), others=("x = 1", "print(get_ipython().execution_count)"))
    record([path], book.root)
    without = printed(read(path).cells[3])
    gpus(CARD)
    record([path], book.root)
    assert without == printed(read(path).cells[3]) != ""


def test_a_cell_that_was_never_recorded_stays_so_and_no_rule_minds(book, make):
    cell = new_code_cell("1 / 0", metadata={"tags": GPU})
    path = chapter(book, make, "chapter", cell)
    record([path], book.root)
    kept = read(path).cells[2]
    assert kept.execution_count is None and kept.outputs == [] and "recorded" not in kept.metadata
    assert [str(finding) for finding in examine(Chapter(path)) if finding.rule == "unexecuted"] == []


def test_on_a_gpu_the_cell_runs_and_its_versions_are_noted(book, make, gpus):
    gpus(CARD)
    path = chapter(book, make, "chapter", new_code_cell("print('new')", metadata={"tags": GPU}))
    record([path], book.root)
    cell = read(path).cells[2]
    assert printed(cell) == "new\n" and cell.execution_count == 2
    assert cell.metadata.recorded == NOTE | {"source": digest("print('new')")}


def test_gpu_1_stores_the_cells_that_need_one_and_nothing_else(book, make, gpus, capsys):
    gpus(CARD, CARD)
    cell = stored('print(place + " and new")')
    with_one = chapter(book, make, "with", cell, others=('place = "here"', "print(place)"))
    without = book.run("without", "print(1)")
    notebook = read(with_one)
    notebook.cells[3].outputs, notebook.cells[3].execution_count = [new_output("stream", text="recorded before\n")], 3
    write(with_one, notebook)
    untouched = without.read_bytes()
    assert main(["--root", str(book.root), "record", "--gpu"]) == 1  # the rules find no figure
    after = read(with_one)
    assert printed(after.cells[2]) == "here and new\n"
    assert after.cells[2].metadata.recorded.gpu == f"2 × {CARD}"
    del after.cells[2], notebook.cells[2]
    assert to_bytes(after) == to_bytes(notebook)
    assert without.read_bytes() == untouched
    told = capsys.readouterr().out
    assert "The chapters ran from their top. Of what they printed, cells that need a GPU alone were stored." in told
    assert "Recorded in place: book/part/with.ipynb\n" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Not recorded: this machine shows no NVIDIA GPU, and GPU=1 records the cells that need one\n"),
        (["with"], "Not recorded: this machine shows no NVIDIA GPU, and GPU=1 records the cells that need one\n"),
        (["plain"], "No cell of book/part/plain.ipynb is tagged needs-gpu, and GPU=1 records those alone\n"),
        (["plain", "with"], "No cell of book/part/plain.ipynb is tagged needs-gpu, and GPU=1 records those alone\n"),
    ],
)
def test_gpu_1_without_a_gpu_or_without_such_a_cell_is_one_sentence(book, make, capsys, words, told):
    path = chapter(book, make, "with", stored("print('new')"))
    book.run("plain", "1")
    before = path.read_bytes()
    assert main(["--root", str(book.root), "record", "--gpu", *words]) == 1
    assert capsys.readouterr().err == told and path.read_bytes() == before


def test_gpu_1_in_a_book_without_such_cells(book, capsys):
    book.run("plain", "1")
    assert main(["--root", str(book.root), "record", "--gpu"]) == 1
    assert capsys.readouterr().err == "No cell of the book is tagged needs-gpu, and GPU=1 records those alone\n"


def test_a_gpu_that_torch_cannot_use_is_none(make, gpus):
    gpus(CARD, problem="GPU 0: no kernel image")
    assert needs.lack("needs-gpu") == "has a GPU that torch cannot use (`make doctor` says why)"
    gpus(CARD)
    assert needs.lack("needs-gpu") == "" and needs.kept(new_code_cell("1", metadata={"tags": GPU})) == ""


def test_what_is_kept_does_not_stop_record_as_hosts_do(book, make, monkeypatch):
    monkeypatch.setattr(needs, "can_make_hosts", lambda: False)
    path = book.run("both", "1", tags=["needs-gpu", "needs-hosts"])
    assert list(needs.unmet([path])) == [needs.lack("needs-hosts")]
    assert needs.unmet([path], keeping=True) == {"shows no NVIDIA GPU": [path]}


@pytest.mark.parametrize("count", [0, 1, 8])
def test_nbval_runs_such_cells_where_there_is_a_gpu_alone(make, gpus, count):
    gpus(*[CARD] * count)
    marks, options = [], {"check": True}
    item = SimpleNamespace(cell=stored("1"), options=options, add_marker=marks.append)
    needs.pytest_collection_modifyitems([item])
    assert options["check"] is True and options["check_exception"] is False
    reasons = [mark.kwargs["reason"] for mark in marks]
    assert reasons == ([] if count else ["this machine shows no NVIDIA GPU, so the cell keeps what is stored"])


def test_nbval_skips_such_a_cell_with_one_sentence(tmp_path, make):
    cells = [new_code_cell("x = 1", execution_count=1), stored("raise SystemExit")]
    cells.append(new_code_cell("x", execution_count=3))
    cells[2].outputs = [new_output("execute_result", data={"text/plain": "1"}, execution_count=3)]
    write(tmp_path / "chapter.ipynb", normalise(make.notebook(cells=cells)))
    command = [sys.executable, "-m", "pytest", "-p", "bookkit.needs", "-p", "no:cacheprovider", "-rs"]
    command += ["--nbval", "--nbval-current-env", "chapter.ipynb"]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "2 passed, 1 skipped" in done.stdout
    assert "this machine shows no NVIDIA GPU, so the cell keeps what is stored" in done.stdout


def test_the_line_below_an_output():
    cell = stored("print(1)")
    assert caption(cell) == f"Recorded on {CARD}, with torch 2.13.0+cu130, CUDA 13.0 and NCCL 2.28.9."
    cell.source = "print( 1, )"
    assert not caption(cell).endswith(recorded.CHANGED)  # ruff's format says nothing new
    cell.source = "print(2)"
    assert caption(cell).endswith(recorded.CHANGED)
    del cell.metadata["recorded"]
    assert caption(cell) == "Nobody noted what this was recorded with."
    cell.execution_count, cell.outputs = None, []
    assert caption(cell) == "Not recorded yet: needs a GPU."


def test_a_page_shows_the_line_and_the_file_does_not(make):
    notebook = make.notebook(cells=[make.code("print(1)"), stored("print(1)", note=NOTE | {"gpu": "<GPU>"})])
    page = shown(notebook)
    assert page.cells[0] == notebook.cells[0] and len(notebook.cells[1].outputs) == 1
    line = page.cells[1].outputs[-1].data
    assert line["text/html"].startswith('<p class="rl-recorded">Recorded on &lt;GPU&gt;, with torch')
    assert line["text/plain"].startswith("Recorded on <GPU>, with torch")


def test_the_note_goes_with_the_tag(make):
    cell = stored("1")
    assert normalise(make.notebook(cells=[cell])).cells[0].metadata.recorded.cuda == "13.0"
    cell.metadata.tags = []
    assert "recorded" not in normalise(make.notebook(cells=[cell])).cells[0].metadata


def test_check_lists_what_waits_for_a_gpu_and_finds_nothing_wrong(book, make, capsys):
    notebook = make.clean()
    changed, never = stored("y = 2"), new_code_cell("y = 4", metadata={"tags": GPU})
    changed.source = "y = 3"
    notebook.cells += [stored("y = 1"), changed, never]
    path = book.add("chapter", normalise(notebook))
    assert [why for _, why in waiting(read(path))] == ["changed since it was recorded", "not recorded yet"]
    opened = Chapter(path, "chapter.ipynb")
    assert examine(opened) == []
    report([opened], [])
    told = capsys.readouterr().out
    fix = "It needs a GPU: `make record GPU=1 CH=chapter` where there is one.\n"
    assert f"chapter.ipynb, cell [5]: changed since it was recorded. {fix}" in told
    assert f"chapter.ipynb, cell [6]: not recorded yet. {fix}" in told
    assert told.endswith("1 chapter, 6 cells, 0 findings, 2 cells to record on a GPU\n")


def test_run_shows_what_is_stored_and_what_was_never_recorded(book, make, capsys):
    never = new_code_cell("raise SystemExit", metadata={"tags": GPU})
    chapter(book, make, "chapter", stored("raise SystemExit"), never)
    assert main(["--root", str(book.root), "run"]) == 0
    assert "cells that need one keep what is stored, in book/part/chapter.ipynb" in capsys.readouterr().out
    page = (book.root / "_build" / "run" / "html" / "book" / "part" / "chapter.html").read_text()
    assert page.index("from a GPU") < page.index(f"Recorded on {CARD}") < page.index("Not recorded yet: needs a GPU.")
    assert page.count('<p class="rl-recorded">') == 2
